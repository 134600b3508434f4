// UTF-8 without NUL.
#include "clarder.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const uint64_t high_bits = 0x8080808080808080u;

// A high bit somewhere if any byte of v is 0 or not ASCII (it may also be set above such a byte, never without one).
static uint64_t suspicious(uint64_t v) { return (v | (v - 0x0101010101010101u)) & high_bits; }

static uint64_t load64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static uint32_t load32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

// Bytes of the sequence at p, which has at least one of its n bytes; 0 if it is bad or cut. Table 3-7 of the Unicode
// standard: only the second byte's range depends on the first.
static size_t sequence(const uint8_t *p, size_t n) {
    uint8_t lead = p[0], low = 0x80, high = 0xBF;
    size_t count;
    if (lead < 0x80) return lead != 0;
    if (lead < 0xC2) return 0;
    if (lead < 0xE0) {
        count = 2;
    } else if (lead < 0xF0) {
        count = 3;
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
    } else if (lead < 0xF5) {
        count = 4;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
    } else {
        return 0;
    }
    if (n < count || p[1] < low || p[1] > high) return 0;
    for (size_t i = 2; i < count; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    return count;
}

static int valid_from(const uint8_t *p, size_t i, size_t n, size_t *error_offset) {
    while (i < n) {
        if (n - i >= 8 && !suspicious(load64(p + i))) {
            i += 8;
            continue;
        }
        size_t count = sequence(p + i, n - i);
        if (!count) {
            if (error_offset) *error_offset = i;
            return 0;
        }
        i += count;
    }
    return 1;
}

int larder_utf8_valid_portable(const uint8_t *p, size_t n, size_t *error_offset) {
    return valid_from(p, 0, n, error_offset);
}

// Whether fewer than 32 bytes are ASCII without NUL, by overlapping words.
static int is_short_ascii(const uint8_t *p, size_t n) {
    if (n >= 8) {
        uint64_t found = suspicious(load64(p)) | suspicious(load64(p + n - 8));
        if (n > 16) found |= suspicious(load64(p + 8)) | suspicious(load64(p + n - 16));
        return !found;
    }
    if (n >= 4) return !suspicious((uint64_t)load32(p) << 32 | load32(p + n - 4));
    for (size_t i = 0; i < n; i++)
        if ((uint8_t)(p[i] - 1) >= 0x7F) return 0;
    return 1;
}

#if defined(__x86_64__)

// The lookup algorithm of John Keiser and Daniel Lemire, "Validating UTF-8 In Less Than One Instruction Per Byte"
// (Software: Practice and Experience 51(5), 2021). Each error that two neighbouring bytes can show has a bit. Three
// tables, by the high and low half of the first byte and the high half of the second, say which errors each half
// allows; an error is there where all three agree. What remains is whether a third or fourth byte is a continuation
// exactly where a lead two or three bytes before asks for one: pair_of_continuations says where one stands.
enum {
    lead_without_continuation = 1 << 0,  // 11______ then 0_______ or 11______
    continuation_after_ascii = 1 << 1,   // 0_______ then 10______
    overlong_of_three = 1 << 2,          // 11100000 then 100_____
    too_large = 1 << 3,                  // 11110100 then 1001____ or 101_____; 11110101 and above then the same
    surrogate = 1 << 4,                  // 11101101 then 101_____
    overlong_of_two = 1 << 5,            // 1100000_ then 10______
    edge_of_four = 1 << 6,               // 11110000 (overlong), 11110101 and above (too large), then 1000____
    pair_of_continuations = 1 << 7,      // 10______ then 10______
};

#define TWICE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

// Non-zero bytes where the 32 bytes of `now`, with those shifted in from before, are bad.
__attribute__((target("avx2"), always_inline)) static inline __m256i errors(__m256i now, __m256i back1, __m256i back2,
                                                                            __m256i back3) {
    enum {
        any = lead_without_continuation | continuation_after_ascii | (char)pair_of_continuations,
        c0 = any | overlong_of_three | overlong_of_two | edge_of_four,
        c1 = any | overlong_of_two,
        c4 = any | too_large,
        above = any | too_large | edge_of_four,
        ascii = continuation_after_ascii,
        pair = (char)pair_of_continuations,
        cut = lead_without_continuation,
        continuation = continuation_after_ascii | overlong_of_two | (char)pair_of_continuations,
    };
    const __m256i first_high = TWICE(
        ascii, ascii, ascii, ascii, ascii, ascii, ascii, ascii, pair, pair, pair, pair, cut | overlong_of_two, cut,
        cut | overlong_of_three | surrogate, cut | too_large | edge_of_four);
    const __m256i first_low = TWICE(c0, c1, any, any, c4, above, above, above, above, above, above, above, above,
                                    above | surrogate, above, above);
    const __m256i second_high =
        TWICE(cut, cut, cut, cut, cut, cut, cut, cut, continuation | overlong_of_three | edge_of_four,
              continuation | overlong_of_three | too_large, continuation | surrogate | too_large,
              continuation | surrogate | too_large, cut, cut, cut, cut);
    const __m256i half = _mm256_set1_epi8(0x0F);

    __m256i pairs = _mm256_and_si256(
        _mm256_and_si256(_mm256_shuffle_epi8(first_high, _mm256_and_si256(_mm256_srli_epi16(back1, 4), half)),
                         _mm256_shuffle_epi8(first_low, _mm256_and_si256(back1, half))),
        _mm256_shuffle_epi8(second_high, _mm256_and_si256(_mm256_srli_epi16(now, 4), half)));
    // Bit 7 is set where the byte two before is 111_____ or the one three before is 1111____.
    __m256i asked = _mm256_and_si256(_mm256_or_si256(_mm256_subs_epu8(back2, _mm256_set1_epi8(0xE0 - 0x80)),
                                                     _mm256_subs_epu8(back3, _mm256_set1_epi8(0xF0 - 0x80))),
                                     _mm256_set1_epi8((char)0x80));
    __m256i nul = _mm256_cmpeq_epi8(now, _mm256_setzero_si256());
    return _mm256_or_si256(_mm256_xor_si256(pairs, asked), nul);
}

__attribute__((target("avx2"), always_inline)) static inline __m256i load256(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

// All before i was found good, except for a sequence that may lie across i.
static int settle(const uint8_t *p, size_t i, size_t n, size_t *error_offset) {
    for (size_t back = 1; back <= 3 && back <= i; back++) {
        uint8_t b = p[i - back];
        if (b < 0x80) break;
        if (b >= 0xC0) {
            size_t count = b >= 0xF0 ? 4 : b >= 0xE0 ? 3 : 2;
            if (count > back) i -= back;
            break;
        }
    }
    return valid_from(p, i, n, error_offset);
}

__attribute__((target("avx2"))) static int valid_avx2(const uint8_t *p, size_t n, size_t *error_offset) {
    __m256i now = load256(p), zero = _mm256_setzero_si256();
    __m256i carried = _mm256_permute2x128_si256(zero, now, 0x21);
    __m256i found = errors(now, _mm256_alignr_epi8(now, carried, 15), _mm256_alignr_epi8(now, carried, 14),
                           _mm256_alignr_epi8(now, carried, 13));
    if (!_mm256_testz_si256(found, found)) return valid_from(p, 0, n, error_offset);

    size_t i = 32;
    int was_ascii = !_mm256_movemask_epi8(now);
    while (n - i >= 32) {
        now = load256(p + i);
        int is_ascii = !_mm256_movemask_epi8(now);
        // From here on the bytes before are in memory, so shifting is loading.
        found = is_ascii && was_ascii ? _mm256_cmpeq_epi8(now, zero)
                                      : errors(now, load256(p + i - 1), load256(p + i - 2), load256(p + i - 3));
        if (!_mm256_testz_si256(found, found)) return settle(p, i, n, error_offset);
        was_ascii = is_ascii;
        i += 32;
    }
    if (n - i < 3) return settle(p, i, n, error_offset);
    // The rest, with some bytes seen before so that it fills a vector, and a look for a sequence cut at the end.
    size_t j = n - 32;
    found = errors(load256(p + j), load256(p + j - 1), load256(p + j - 2), load256(p + j - 3));
    if (!_mm256_testz_si256(found, found) || p[n - 1] >= 0xC0 || p[n - 2] >= 0xE0 || p[n - 3] >= 0xF0)
        return settle(p, i, n, error_offset);
    return 1;
}

static int has_avx2;
__attribute__((constructor)) static void prepare(void) {
    __builtin_cpu_init();
    has_avx2 = __builtin_cpu_supports("avx2") != 0;
}
#endif

int larder_utf8_valid(const uint8_t *p, size_t n, size_t *error_offset) {
    if (n < 32) return is_short_ascii(p, n) || valid_from(p, 0, n, error_offset);
#if defined(__x86_64__)
    if (__builtin_expect(has_avx2, 1)) return valid_avx2(p, n, error_offset);
#endif
    return valid_from(p, 0, n, error_offset);
}
