// Sixteen lanes in one register: AVX-512 with VNNI, and BF16 where it is compiled in.
#pragma once
#include <immintrin.h>

#include "common.h"
#include "simd_x86.h"

namespace {

struct Simd {
  using F = __m512;
  using I = __m512i;
  using B = __m512i;                     // 64 bytes: 16 lanes of four codes, or of a bf16 pair
  static constexpr int kRows = 6;        // rows a GEMM step computes at most
  static constexpr int kKeyTiles = 4;    // key tiles of 16 tokens an attention step holds
  static constexpr int kDims = 4;        // vectors of value dimensions it holds
  static constexpr float kHigh = 16.0f;  // high() leaves its nibbles multiplied by this

  static MZ_INLINE F zero() { return _mm512_setzero_ps(); }
  static MZ_INLINE F set(float x) { return _mm512_set1_ps(x); }
  static MZ_INLINE F load(const float* p) { return _mm512_loadu_ps(p); }
  static MZ_INLINE void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static MZ_INLINE F load_half(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static MZ_INLINE F load_bf16(const uint8_t* p) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
  static MZ_INLINE F add(F a, F b) { return _mm512_add_ps(a, b); }
  static MZ_INLINE F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static MZ_INLINE F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static MZ_INLINE F div(F a, F b) { return _mm512_div_ps(a, b); }
  static MZ_INLINE F max(F a, F b) { return _mm512_max_ps(a, b); }
  static MZ_INLINE F abs(F a) { return _mm512_abs_ps(a); }
  static MZ_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static MZ_INLINE F round(F a) { return _mm512_roundscale_ps(a, 0); }
  static MZ_INLINE F scale2(F a, F n) { return _mm512_scalef_ps(a, n); }  // a · 2ⁿ
  static MZ_INLINE F select(uint32_t bits, F a, F b) {                    // bit set: a
    return _mm512_mask_blend_ps(static_cast<__mmask16>(bits), b, a);
  }
  // 32 codes, rounded from a and b; returns their sum.
  static MZ_INLINE int32_t store_codes(int8_t* p, F a, F b) {
    const __m128i low = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(a));
    const __m128i high = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(b));
    const __m256i codes = _mm256_set_m128i(high, low);
    return store_and_sum(p, codes);
  }
  static MZ_INLINE void store_bf16(uint16_t* p, F x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16)));
  }

  static MZ_INLINE I izero() { return _mm512_setzero_si512(); }
  static MZ_INLINE I ints(int32_t x) { return _mm512_set1_epi32(x); }
  static MZ_INLINE F to_float(I a) { return _mm512_cvtepi32_ps(a); }
  static MZ_INLINE B bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static MZ_INLINE B low(B b) { return _mm512_and_si512(b, _mm512_set1_epi8(0x0f)); }
  static MZ_INLINE B high(B b) {
    return _mm512_and_si512(b, _mm512_set1_epi8(static_cast<char>(0xf0)));
  }
  // Six bits each of three vectors, and the six that their two top bits make.
  static MZ_INLINE B six(B b) { return _mm512_and_si512(b, _mm512_set1_epi8(63)); }
  static MZ_INLINE B last_six(B x, B y, B z) {
    constexpr int kAndOr = 0xf8;  // a | (b & c)
    B low = _mm512_and_si512(_mm512_srli_epi16(x, 6), _mm512_set1_epi8(3));
    low = _mm512_ternarylogic_epi32(low, _mm512_srli_epi16(y, 4), _mm512_set1_epi8(12), kAndOr);
    return _mm512_ternarylogic_epi32(low, _mm512_srli_epi16(z, 2), _mm512_set1_epi8(48), kAndOr);
  }
  static MZ_INLINE B splat(const void* four) {
    return _mm512_set1_epi32(*static_cast<const int32_t*>(four));
  }
  // acc += Σ of four unsigned codes by four signed ones, in each lane.
  static MZ_INLINE I dot(I acc, B w, B x) { return _mm512_dpbusd_epi32(acc, w, x); }
  static MZ_INLINE I dot_nibbles(I acc, B w, B x) { return _mm512_dpbusd_epi32(acc, w, x); }
  // Where dot() takes kQ8's bytes as they are (q + 128), the sum starts at -128 · Σ x.
  static MZ_INLINE I start(const int32_t* from) { return splat(from); }

  static MZ_INLINE F dot2(F acc, B pairs, B x) {
#if defined(__AVX512BF16__)
    return _mm512_dpbf16_ps(acc, (__m512bh)pairs, (__m512bh)x);
#else
    const __m512i odd = _mm512_set1_epi32(static_cast<int>(0xffff0000));
    acc = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(pairs, odd)),
                          _mm512_castsi512_ps(_mm512_and_si512(x, odd)), acc);
    return _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)),
                           _mm512_castsi512_ps(_mm512_slli_epi32(x, 16)), acc);
#endif
  }
  static MZ_INLINE float sum(F a) { return _mm512_reduce_add_ps(a); }
  static MZ_INLINE float peak(F a) { return _mm512_reduce_max_ps(a); }
};

}  // namespace
