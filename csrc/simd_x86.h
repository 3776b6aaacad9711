// What the x86 instruction sets share.
#pragma once
#include <immintrin.h>

#include "common.h"

namespace {

// Stores 32 codes; returns their sum.
MZ_INLINE int32_t store_and_sum(int8_t* p, __m256i codes) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), codes);
  const __m256i up = _mm256_xor_si256(codes, _mm256_set1_epi8(static_cast<char>(0x80)));
  const __m256i sums = _mm256_sad_epu8(up, _mm256_setzero_si256());
  const __m128i half =
      _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return _mm_cvtsi128_si32(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half))) - 32 * 128;
}

}  // namespace
