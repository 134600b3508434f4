// CRC-32C. The arithmetic is on polynomials over GF(2) modulo P = 0x11EDC6F41 with bits reflected: bit 0 of a 32-bit
// register is the coefficient of x^31.
#include "clarder.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static uint32_t tables[8][256];

static uint64_t load64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

uint32_t larder_crc32c_portable(uint32_t crc, const void *data, size_t n) {
    const uint8_t *p = data;
    uint32_t c = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v = load64(p) ^ c;
        c = tables[7][v & 255] ^ tables[6][v >> 8 & 255] ^ tables[5][v >> 16 & 255] ^ tables[4][v >> 24 & 255] ^
            tables[3][v >> 32 & 255] ^ tables[2][v >> 40 & 255] ^ tables[1][v >> 48 & 255] ^ tables[0][v >> 56];
    }
    for (; n; n--) c = c >> 8 ^ tables[0][(c ^ *p++) & 255];
    return ~c;
}

#if defined(__x86_64__)

// The crc32 instruction takes 3 cycles and one may begin in each, so three streams run at once. A stretch of 3w words
// is cut into three of w words, with registers A, B, C at their ends; the whole is
//
//     A * x^(128 w) + B * x^(64 w) + C
//
// A carry-less product of two reflected 32-bit values is, read as a reflected 64-bit word, their product times x, and
// crc32 of that word multiplies by x^32 and reduces. So A * x^m is crc32(0, clmul(A, x^(m - 33))), and since crc32 is
// linear both products are added to the last word of C and reduced by the instruction that had to run anyway.
enum { stream_words_max = 128, stream_words_min = 4 };
static uint32_t shift_by_words[2 * stream_words_max + 1];  // [i] = x^(64 i - 33) mod P
static int has_crc_instruction;

__attribute__((target("sse4.2,pclmul"))) static uint64_t shifted(uint64_t crc, uint32_t factor) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi32_si128((int)factor), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t crc32c_sse42(uint32_t crc, const uint8_t *p, size_t n) {
    uint64_t a = (uint32_t)~crc;
    while (n >= 3 * 8 * stream_words_min) {
        size_t words = n / 24;
        if (words > stream_words_max) words = stream_words_max;
        const uint8_t *q = p + 8 * words, *r = q + 8 * words, *last = q - 8;
        uint64_t b = 0, c = 0;
        for (; p < last; p += 8, q += 8, r += 8) {
            a = _mm_crc32_u64(a, load64(p));
            b = _mm_crc32_u64(b, load64(q));
            c = _mm_crc32_u64(c, load64(r));
        }
        a = _mm_crc32_u64(a, load64(p));
        b = _mm_crc32_u64(b, load64(q));
        uint64_t carried = shifted(a, shift_by_words[2 * words]) ^ shifted(b, shift_by_words[words]);
        a = _mm_crc32_u64(c, load64(r) ^ carried);
        p = r + 8;
        n -= 24 * words;
    }
    for (; n >= 8; n -= 8, p += 8) a = _mm_crc32_u64(a, load64(p));
    uint32_t c = (uint32_t)a;
    if (n & 4) {
        uint32_t v;
        memcpy(&v, p, 4);
        c = _mm_crc32_u32(c, v);
        p += 4;
    }
    if (n & 2) {
        uint16_t v;
        memcpy(&v, p, 2);
        c = _mm_crc32_u16(c, v);
        p += 2;
    }
    if (n & 1) c = _mm_crc32_u8(c, *p);
    return ~c;
}
#endif

// Before main, so that the hot path has no once-check.
__attribute__((constructor)) static void prepare(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) c = c >> 1 ^ (c & 1 ? 0x82F63B78u : 0);
        tables[0][i] = c;
    }
    for (int t = 1; t < 8; t++)
        for (int i = 0; i < 256; i++) tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 255];
#if defined(__x86_64__)
    uint32_t power = 1;  // x^31
    for (int i = 1; i <= 2 * stream_words_max; i++) {
        shift_by_words[i] = power;
        for (int byte = 0; byte < 8; byte++) power = power >> 8 ^ tables[0][power & 255];
    }
    __builtin_cpu_init();
    has_crc_instruction = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
#endif
}

uint32_t larder_crc32c(uint32_t crc, const void *p, size_t n) {
#if defined(__x86_64__)
    if (__builtin_expect(has_crc_instruction, 1)) return crc32c_sse42(crc, p, n);
#endif
    return larder_crc32c_portable(crc, p, n);
}
