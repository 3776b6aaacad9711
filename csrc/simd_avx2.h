// Sixteen lanes in two registers: AVX2 with FMA and F16C, and AVX-VNNI where compiled in.
#pragma once
#include <immintrin.h>

#include "common.h"
#include "simd_x86.h"

namespace {

struct Simd {
  struct F {
    __m256 a, b;
  };
  struct I {
    __m256i a, b;
  };
  using B = I;
  static constexpr int kRows = 4;  // rows a GEMM step computes at most
  static constexpr int kKeyTiles = 1;
  static constexpr int kDims = 1;

#define MZ_BOTH(call) {_mm256_##call(x.a, y.a), _mm256_##call(x.b, y.b)}
  static MZ_INLINE F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static MZ_INLINE F set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static MZ_INLINE F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static MZ_INLINE void store(float* p, F x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
  }
  static MZ_INLINE __m128i load8(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static MZ_INLINE F load_half(const uint8_t* p) {
    return {_mm256_cvtph_ps(load8(p)), _mm256_cvtph_ps(load8(p + 16))};
  }
  static MZ_INLINE __m256 widen_bf16(__m128i h) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
  }
  static MZ_INLINE F load_bf16(const uint8_t* p) {
    return {widen_bf16(load8(p)), widen_bf16(load8(p + 16))};
  }
  static MZ_INLINE F add(F x, F y) { return MZ_BOTH(add_ps); }
  static MZ_INLINE F sub(F x, F y) { return MZ_BOTH(sub_ps); }
  static MZ_INLINE F mul(F x, F y) { return MZ_BOTH(mul_ps); }
  static MZ_INLINE F div(F x, F y) { return MZ_BOTH(div_ps); }
  static MZ_INLINE F max(F x, F y) { return MZ_BOTH(max_ps); }
  static MZ_INLINE F abs(F y) {
    const F x = set(-0.0f);
    return MZ_BOTH(andnot_ps);
  }
  static MZ_INLINE F fma(F x, F y, F z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
  }
  static MZ_INLINE F round(F x) { return {_mm256_round_ps(x.a, 8), _mm256_round_ps(x.b, 8)}; }
  static MZ_INLINE __m256 power2(__m256 n) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
  static MZ_INLINE F scale2(F x, F n) {
    const F y{power2(n.a), power2(n.b)};
    return MZ_BOTH(mul_ps);
  }
  static MZ_INLINE __m256 lanes(uint32_t bits) {  // all ones where the lane's bit is set
    const __m256i which = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i set = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), which);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, which));
  }
  static MZ_INLINE F select(uint32_t bits, F x, F y) {
    return {_mm256_blendv_ps(y.a, x.a, lanes(bits)), _mm256_blendv_ps(y.b, x.b, lanes(bits >> 8))};
  }
  static MZ_INLINE __m256i words(F x) {
    const __m256i packed = _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b));
    return _mm256_permute4x64_epi64(packed, 0xd8);
  }
  // 32 codes, rounded from a and b; returns their sum.
  static MZ_INLINE int32_t store_codes(int8_t* p, F a, F b) {
    const __m256i codes = _mm256_permute4x64_epi64(_mm256_packs_epi16(words(a), words(b)), 0xd8);
    return store_and_sum(p, codes);
  }
  static MZ_INLINE __m256i round_bf16(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    return _mm256_srli_epi32(up, 16);
  }
  static MZ_INLINE void store_bf16(uint16_t* p, F x) {
    const __m256i words = _mm256_packus_epi32(round_bf16(x.a), round_bf16(x.b));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(words, 0xd8));
  }

  static MZ_INLINE __m256i load32(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static MZ_INLINE B bytes(const uint8_t* p) { return {load32(p), load32(p + 32)}; }
  static MZ_INLINE B splat(const void* four) {
    const __m256i x = _mm256_set1_epi32(*static_cast<const int32_t*>(four));
    return {x, x};
  }
  static MZ_INLINE __m256 dot_pair(__m256 acc, __m256i pairs, __m256i x) {
    const __m256i odd = _mm256_set1_epi32(static_cast<int>(0xffff0000));
    acc = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_and_si256(pairs, odd)),
                          _mm256_castsi256_ps(_mm256_and_si256(x, odd)), acc);
    return _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)),
                           _mm256_castsi256_ps(_mm256_slli_epi32(x, 16)), acc);
  }
  static MZ_INLINE F dot2(F acc, B pairs, B x) {
    return {dot_pair(acc.a, pairs.a, x.a), dot_pair(acc.b, pairs.b, x.b)};
  }
  static MZ_INLINE float sum(F x) {
    __m256 v = _mm256_add_ps(x.a, x.b);
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(h, _mm_movehdup_ps(h)));
  }
  static MZ_INLINE float peak(F x) {
    __m256 v = _mm256_max_ps(x.a, x.b);
    __m128 h = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    h = _mm_max_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_max_ss(h, _mm_movehdup_ps(h)));
  }
#undef MZ_BOTH
};

}  // namespace
