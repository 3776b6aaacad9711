#include "kernels.h"
#include "simd_avx2.h"

namespace {

using namespace mezzotint;

// Sixteen registers hold the sums of four rows for eight or sixteen outputs, no more: so a tile
// is computed in strips, and each strip's sums are scaled and added before the next begins.
constexpr int vectors_of(Format format) { return format == Format::kQ4 ? 2 : 1; }

MZ_INLINE __m256i four_of(const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, 4);
  return _mm256_set1_epi32(four);
}

// Keeps the compiler from computing what comes later, or spreading out all inputs, beforehand:
// there are no registers for that.
MZ_INLINE void in_turn(__m256i& sum) { asm volatile("" : "+x"(sum) : : "memory"); }

MZ_INLINE __m256i masked(__m256i x, char mask) {
  return _mm256_and_si256(x, _mm256_set1_epi8(mask));
}
MZ_INLINE __m256i low_nibbles(__m256i both) { return masked(both, 15); }
MZ_INLINE __m256i high_nibbles(__m256i both) { return low_nibbles(_mm256_srli_epi16(both, 4)); }

constexpr int six_strip(int strip) { return strip / 2 * 192 + strip % 2 * 32; }

// Four inputs, of step s, of kQ6's eight outputs at `codes`.
MZ_INLINE __m256i six(const uint8_t* codes, int s) {
  const uint8_t* at = codes + s / 4 * 384;
  if (s % 4 < 3) return masked(Simd::load32(at + s % 4 * 64), 63);
  const __m256i w0 = masked(_mm256_srli_epi16(Simd::load32(at), 6), 3);
  const __m256i w1 = masked(_mm256_srli_epi16(Simd::load32(at + 64), 4), 12);
  const __m256i w2 = masked(_mm256_srli_epi16(Simd::load32(at + 128), 2), 48);
  return _mm256_or_si256(_mm256_or_si256(w0, w1), w2);
}

#if defined(__AVXVNNI__)

template <int R, Format kFormat>
MZ_INLINE void strip_sums(__m256i (&sums)[R][vectors_of(kFormat)], const uint8_t* codes,
                          const int8_t* const (&x)[R], int strip) {
  const auto add = [&](__m256i w, int step, int vector) {
    for (int r = 0; r < R; ++r) {
      sums[r][vector] = _mm256_dpbusd_avx_epi32(sums[r][vector], w, four_of(x[r] + 4 * step));
      in_turn(sums[r][vector]);
    }
  };
  for (int s = 0; s < kGroup / 4; ++s) {
    if constexpr (kFormat == Format::kQ6) {
      add(six(codes + six_strip(strip), s), s, 0);
    } else if constexpr (kFormat == Format::kQ8) {
      add(Simd::load32(codes + 128 * s + 32 * strip), s, 0);
    } else {
      const __m256i both = Simd::load32(codes + 64 * s + 32 * strip);
      add(low_nibbles(both), s, 0);
      add(high_nibbles(both), s, 1);
    }
  }
}

#else

// Without a dot product of four: products of codes with ±127, in pairs, are summed in 16 bits
// for as long as they must stay below 32768 — a group's eight steps for codes below 16, two for
// codes below 64 — and then widened. kQ8's bytes go as two nibbles.
MZ_INLINE __m256i widened(__m256i sums, int16_t times = 1) {
  return _mm256_madd_epi16(sums, _mm256_set1_epi16(times));
}

template <int R>
MZ_INLINE void nibble_sums(__m256i (&low)[R], __m256i (&high)[R], const uint8_t* codes, int stride,
                           const int8_t* const (&x)[R]) {
  static_assert(15 * 127 * 2 * (kGroup / 4) < 32768);
  for (int r = 0; r < R; ++r) low[r] = high[r] = _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int s = 0; s < kGroup / 4; ++s) {
    const __m256i both = Simd::load32(codes + stride * s);
    const __m256i w0 = low_nibbles(both), w1 = high_nibbles(both);
    for (int r = 0; r < R; ++r) {
      const __m256i inputs = four_of(x[r] + 4 * s);
      low[r] = _mm256_add_epi16(low[r], _mm256_maddubs_epi16(w0, inputs));
      high[r] = _mm256_add_epi16(high[r], _mm256_maddubs_epi16(w1, inputs));
      in_turn(low[r]), in_turn(high[r]);
    }
  }
}

template <int R>
MZ_INLINE void six_sums(__m256i (&sums)[R][1], const uint8_t* codes, const int8_t* const (&x)[R]) {
  static_assert(63 * 127 * 2 * 2 < 32768);
#pragma GCC unroll 4
  for (int s = 0; s < kGroup / 4; s += 2) {
    const __m256i w0 = six(codes, s), w1 = six(codes, s + 1);
    for (int r = 0; r < R; ++r) {
      const __m256i p0 = _mm256_maddubs_epi16(w0, four_of(x[r] + 4 * s));
      const __m256i p1 = _mm256_maddubs_epi16(w1, four_of(x[r] + 4 * s + 4));
      sums[r][0] = _mm256_add_epi32(sums[r][0], widened(_mm256_add_epi16(p0, p1)));
      in_turn(sums[r][0]);
    }
  }
}

template <int R, Format kFormat>
MZ_INLINE void strip_sums(__m256i (&sums)[R][vectors_of(kFormat)], const uint8_t* codes,
                          const int8_t* const (&x)[R], int strip) {
  if constexpr (kFormat == Format::kQ6) {
    six_sums<R>(sums, codes + six_strip(strip), x);
  } else {
    __m256i low[R], high[R];
    nibble_sums<R>(low, high, codes + 32 * strip, kFormat == Format::kQ4 ? 64 : 128, x);
    for (int r = 0; r < R; ++r) {
      if constexpr (kFormat == Format::kQ4) {
        sums[r][0] = widened(low[r]);
        sums[r][1] = widened(high[r]);
      } else {
        const __m256i sum = _mm256_add_epi32(widened(low[r]), widened(high[r], 16));
        sums[r][0] = _mm256_add_epi32(sums[r][0], sum);
      }
    }
  }
}

#endif

// Where sums begin, from -128 · Σ inputs.
template <Format kFormat>
MZ_INLINE __m256i begun(int32_t start) {
  if constexpr (kFormat == Format::kQ4) return _mm256_setzero_si256();
  return _mm256_srai_epi32(_mm256_set1_epi32(start), kFormat == Format::kQ6 ? 2 : 0);
}

// See the function of that name in kernels_impl.h.
#define MZ_OWN_TILE
template <int R, Format kFormat, class Ahead>
MZ_INLINE void quantized_tile(Simd::F (&out)[R][2], const uint8_t* tile, const Rows& rows,
                              Ahead ahead) {
  constexpr int kVectors = vectors_of(kFormat), kBytes = Matrix{nullptr, kFormat}.group_bytes();
  const int8_t* inputs = rows.codes;  // copies: in_turn() makes the compiler read a field again
  const float *scale = rows.scale, *offset = rows.offset;
  const int32_t* start = rows.start;
  const int groups = rows.k / kGroup, step = rows.group_step;
  for (int g = 0; g < groups; ++g, tile += kBytes) {
    ahead.next();
    const int8_t* x[R];
    for (int r = 0; r < R; ++r) x[r] = inputs + r * kGroup;
    const uint8_t* codes = tile + 2 * kTile * kVectors;
#pragma GCC unroll 4
    for (int strip = 0; strip < 4 / kVectors; ++strip) {
      __m256i sums[R][kVectors];
      for (int r = 0; r < R; ++r)
        for (auto& sum : sums[r]) sum = begun<kFormat>(start[r]);
      strip_sums<R, kFormat>(sums, codes, x, strip);
      for (int n = 0; n < kVectors; ++n) {
        const int column = 8 * strip + 16 * n;
        const __m256 d = _mm256_cvtph_ps(Simd::load8(tile + 2 * column));
        for (int r = 0; r < R; ++r) {
          __m256& to = column % 16 ? out[r][column / 16].b : out[r][column / 16].a;
          const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[r][n]), d);
          to = _mm256_fmadd_ps(product, _mm256_set1_ps(scale[r]), to);
          if constexpr (kFormat == Format::kQ4) {
            const __m256 m = _mm256_cvtph_ps(Simd::load8(tile + 2 * (kTile + column)));
            to = _mm256_fmadd_ps(m, _mm256_set1_ps(offset[r]), to);
          }
        }
      }
    }
    inputs += step * kGroup, scale += step, offset += step, start += step;
  }
}

}  // namespace

#include "kernels_impl.h"

namespace mezzotint {
#if defined(__AVXVNNI__)
extern const Kernels kAvxVnni = table("avxvnni");
#else
extern const Kernels kAvx2 = table("avx2");
#endif
}  // namespace mezzotint
