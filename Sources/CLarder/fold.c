// Folding of text (SPEC.md section 17): what needs no look at its neighbours, and finding text in folded text.
#define _GNU_SOURCE
#include "fold_table.h"

#include <string.h>

#include "clarder.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// A set bit: a scalar below U+10000 that folding leaves as it is, whatever stands beside it.
static uint8_t ordinary[0x10000 / 8];

__attribute__((constructor)) static void prepare_ordinary(void) {
    memset(ordinary, 0xFF, sizeof ordinary);
    for (size_t i = 0; i < sizeof joining_ranges / sizeof *joining_ranges; i++)
        for (uint32_t c = joining_ranges[i].first; c <= joining_ranges[i].last && c < 0x10000; c++)
            ordinary[c >> 3] &= (uint8_t) ~(1 << (c & 7));
    for (size_t i = 0; i < sizeof fold_ranges / sizeof *fold_ranges; i++)
        for (uint32_t c = fold_ranges[i].first; c <= fold_ranges[i].last && c < 0x10000; c += fold_ranges[i].stride)
            ordinary[c >> 3] &= (uint8_t) ~(1 << (c & 7));
}

uint32_t larder_fold_scalar(uint32_t c) {
    size_t low = 0, high = sizeof fold_ranges / sizeof *fold_ranges;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (fold_ranges[middle].last < c) low = middle + 1;
        else high = middle;
    }
    if (low == sizeof fold_ranges / sizeof *fold_ranges) return c;
    const struct fold_range *range = &fold_ranges[low];
    if (c < range->first || (c - range->first) % (uint32_t)range->stride != 0) return c;
    return (uint32_t)((int32_t)c + range->delta);
}

static int is_joining(uint32_t c) {
    size_t low = 0, high = sizeof joining_ranges / sizeof *joining_ranges;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (joining_ranges[middle].last < c) low = middle + 1;
        else high = middle;
    }
    return low < sizeof joining_ranges / sizeof *joining_ranges && joining_ranges[low].first <= c;
}

// What is not plain: it may join to its neighbours, or it is no UTF-8.
static const uint32_t not_plain = UINT32_MAX;

static uint32_t plain_fold(uint32_t c) {
    if (c < 0x10000 && ordinary[c >> 3] >> (c & 7) & 1) return c;
    return is_joining(c) ? not_plain : larder_fold_scalar(c);
}

// The scalar at p, which has n > 0 bytes, and its byte count; a count of 0 where the bytes are no sequence.
static uint32_t decode(const uint8_t *p, size_t n, size_t *count) {
    uint32_t lead = p[0], c;
    size_t bytes = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    *count = 0;
    if (bytes == 0 || bytes > n) return not_plain;
    c = bytes == 1 ? lead : lead & (0x7Fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((p[i] & 0xC0) != 0x80) return not_plain;
        c = c << 6 | (p[i] & 0x3F);
    }
    if ((bytes == 3 && (c < 0x800 || (c & 0xFFFFF800) == 0xD800)) || (bytes == 4 && (c < 0x10000 || c > 0x10FFFF)))
        return not_plain;
    *count = bytes;
    return c;
}

static size_t encode(uint32_t c, uint8_t *out) {
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xC0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xE0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (c & 0x3F));
    return 4;
}

// Hangul as decomposed text has it: a leading consonant at p, a vowel, perhaps a trailing consonant, which form C makes
// one syllable. The bytes read, or 0 where no vowel follows or what follows may join as well.
static size_t compose_hangul(uint32_t lead, const uint8_t *p, size_t n, uint32_t *syllable) {
    size_t count, at = 3;
    if (n < 6) return 0;
    uint32_t vowel = decode(p + at, n - at, &count);
    if (vowel < 0x1161 || vowel > 0x1175) return 0;
    at += count;
    *syllable = 0xAC00 + ((lead - 0x1100) * 21 + (vowel - 0x1161)) * 28;
    if (at == n) return at;
    uint32_t next = decode(p + at, n - at, &count);
    if (next >= 0x11A8 && next <= 0x11C2) {
        *syllable += next - 0x11A7;
        at += count;
        if (at == n) return at;
        next = decode(p + at, n - at, &count);
    }
    return plain_fold(next) == not_plain ? 0 : at;
}

// One plain scalar, or one syllable of parts. 0 where what stands at p is not plain.
static size_t fold_one(const uint8_t *p, size_t n, uint8_t *out, size_t *written) {
    size_t count;
    uint32_t c = decode(p, n, &count);
    if (count == 3 && c >= 0x1100 && c <= 0x1112) {
        uint32_t syllable;
        size_t whole = compose_hangul(c, p, n, &syllable);
        if (whole) {
            *written = encode(syllable, out);
            return whole;
        }
    }
    uint32_t folded = count ? plain_fold(c) : not_plain;
    if (folded == not_plain) return 0;
    if (folded == c) {
        memcpy(out, p, count);
        *written = count;
    } else {
        *written = encode(folded, out);
    }
    return count;
}

size_t larder_fold_joining(const uint8_t *p, size_t n) {
    size_t i = 0, count;
    while (i < n) {
        uint32_t c = decode(p + i, n - i, &count);
        if (i > 0 && count && plain_fold(c) != not_plain) break;
        i += count ? count : 1;
    }
    return i;
}

// What lies before p[i] is the last scalar read, and before out[o] what it became: one for one, but at the beginning.
static size_t step_back(const uint8_t *p, size_t i, uint8_t *out, size_t o, size_t *written) {
    if (i > 0) {
        do i--;
        while (i > 0 && (p[i] & 0xC0) == 0x80);
        do o--;
        while (o > 0 && (out[o] & 0xC0) == 0x80);
    }
    *written = o;
    return i;
}

static uint64_t load64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

// Eight bytes of ASCII in lower case.
static uint64_t lower64(uint64_t v) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t from_a = v + (0x80 - 'A') * ones, above_z = v + (0x7F - 'Z') * ones;
    return v | ((from_a & ~above_z & 0x80 * ones) >> 2);
}

size_t larder_fold_plain_portable(const uint8_t *p, size_t n, uint8_t *out, size_t *written) {
    size_t i = 0, o = 0, wrote;
    while (i < n) {
        uint64_t word;
        if (n - i >= 8 && !((word = load64(p + i)) & 0x8080808080808080u)) {
            word = lower64(word);
            memcpy(out + o, &word, 8);
            i += 8;
            o += 8;
            continue;
        }
        size_t read = fold_one(p + i, n - i, out + o, &wrote);
        if (!read) return step_back(p, i, out, o, written);
        i += read;
        o += wrote;
    }
    *written = o;
    return i;
}

#if defined(__x86_64__)

__attribute__((target("avx2"), always_inline)) static inline __m256i all(int byte) {
    return _mm256_set1_epi8((char)byte);
}

// Writes 32 bytes in lower case, and says by bits at which of them a sequence begins that has to be looked at: any but
// of U+4000–U+9FFF and U+B000–U+CFFF, which are leads E4–E9, EB and EC, and of most of U+AC00–U+D77F.
__attribute__((target("avx2"), always_inline)) static inline uint32_t fold_block(const uint8_t *p, uint8_t *out) {
    __m256i v = _mm256_loadu_si256((const __m256i *)p);
    __m256i upper = _mm256_and_si256(_mm256_cmpgt_epi8(v, all('A' - 1)), _mm256_cmpgt_epi8(all('Z' + 1), v));
    _mm256_storeu_si256((__m256i *)out, _mm256_or_si256(v, _mm256_and_si256(upper, all(0x20))));
    if (!_mm256_movemask_epi8(v)) return 0;
    // Signed: 0x80 … 0xFF are below 0, in their order.
    __m256i next = _mm256_loadu_si256((const __m256i *)(p + 1));
    __m256i lead = _mm256_and_si256(_mm256_cmpgt_epi8(v, all(0xBF)), _mm256_cmpgt_epi8(_mm256_setzero_si256(), v));
    __m256i outside = _mm256_or_si256(_mm256_cmpgt_epi8(all(0xE4), v), _mm256_cmpgt_epi8(v, all(0xED)));
    __m256i early = _mm256_and_si256(_mm256_cmpeq_epi8(v, all(0xEA)), _mm256_cmpgt_epi8(all(0xB0), next));
    __m256i late = _mm256_and_si256(_mm256_cmpeq_epi8(v, all(0xED)), _mm256_cmpgt_epi8(next, all(0x9D)));
    __m256i bad = _mm256_and_si256(lead, _mm256_or_si256(outside, _mm256_or_si256(early, late)));
    return (uint32_t)_mm256_movemask_epi8(bad);
}

__attribute__((target("avx2"))) static size_t fold_plain_avx2(const uint8_t *p, size_t n, uint8_t *out,
                                                              size_t *written) {
    size_t i = 0, o = 0, wrote;
    while (i < n) {
        if (p[i] < 0x80 || (p[i] >= 0xE4 && p[i] <= 0xED)) {
            size_t start = i, left = n - i;
            uint32_t bad;
            if (left > 32) {
                bad = fold_block(p + i, out + o);
            } else {
                uint8_t padded[64] = {0};
                memcpy(padded, p + i, left);
                bad = fold_block(padded, out + o);
            }
            size_t good = bad ? (size_t)__builtin_ctz(bad) : left < 32 ? left : 32;
            i += good;
            o += good;
            if (i == n) break;
            // The block's end may lie inside a sequence: the next begins where that does.
            while (!bad && i > start && (p[i] & 0xC0) == 0x80) i--, o--;
            if (!bad && i > start) continue;
        }
        size_t read = fold_one(p + i, n - i, out + o, &wrote);
        if (!read) return step_back(p, i, out, o, written);
        i += read;
        o += wrote;
    }
    *written = o;
    return i;
}

// Both anchor bytes are looked for 32 places at a time; where both stand, the whole is compared.
__attribute__((target("avx2"))) static ssize_t find_avx2(const uint8_t *p, size_t n, const larder_needle *needle) {
    const __m256i first = all(needle->bytes[needle->first]), second = all(needle->bytes[needle->second]);
    const size_t last = n - needle->count;
    for (size_t i = 0; i <= last; i += 32) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(p + i + needle->first));
        __m256i b = _mm256_loadu_si256((const __m256i *)(p + i + needle->second));
        uint32_t places =
            (uint32_t)_mm256_movemask_epi8(_mm256_and_si256(_mm256_cmpeq_epi8(a, first), _mm256_cmpeq_epi8(b, second)));
        while (places) {
            size_t at = i + (size_t)__builtin_ctz(places);
            if (at > last) return -1;
            if (!memcmp(p + at, needle->bytes, needle->count)) return (ssize_t)at;
            places &= places - 1;
        }
    }
    return -1;
}

static int has_avx2;
__attribute__((constructor)) static void prepare_avx2(void) {
    __builtin_cpu_init();
    has_avx2 = __builtin_cpu_supports("avx2") != 0;
}
#endif

size_t larder_fold_plain(const uint8_t *p, size_t n, uint8_t *out, size_t *written) {
#if defined(__x86_64__)
    if (__builtin_expect(has_avx2, 1)) return fold_plain_avx2(p, n, out, written);
#endif
    return larder_fold_plain_portable(p, n, out, written);
}

// How common a byte is in text, roughly: continuations are rarest, then letters, then spaces and vowels, then leads.
static int commonness(uint8_t byte) {
    if (byte >= 0xC0) return 3;
    if (byte >= 0x80) return 0;
    return strchr(" eationsr", byte) ? 2 : 1;
}

larder_needle larder_needle_of(const uint8_t *bytes, size_t count) {
    larder_needle needle = {bytes, count, 0, 0};
    for (size_t i = 1; i < count; i++)
        if (commonness(bytes[i]) < commonness(bytes[needle.first])) needle.first = i;
    needle.second = needle.first == 0 && count > 1 ? 1 : 0;
    for (size_t i = 0; i < count; i++)
        if (i != needle.first && commonness(bytes[i]) <= commonness(bytes[needle.second])) needle.second = i;
    return needle;
}

ssize_t larder_find(const uint8_t *p, size_t n, const larder_needle *needle) {
    if (needle->count == 0) return 0;
    if (n < needle->count) return -1;
#if defined(__x86_64__)
    if (__builtin_expect(has_avx2, 1)) return find_avx2(p, n, needle);
#endif
    return larder_find_portable(p, n, needle);
}

ssize_t larder_find_portable(const uint8_t *p, size_t n, const larder_needle *needle) {
    if (needle->count == 0) return 0;
    if (n < needle->count) return -1;
    const uint8_t *found = memmem(p, n, needle->bytes, needle->count);
    return found ? found - p : -1;
}
