#include "kernels.h"
#include "simd_neon.h"

#if defined(__ARM_FEATURE_MATMUL_INT8)
namespace {

using namespace mezzotint;

// i8mm: one instruction multiplies two outputs by two rows over eight inputs. Two steps'
// vectors of four outputs, zipped, give it its operands; rows go in pairs.
#define MZ_OWN_GROUP_DOTS
template <int R, Format kFormat>
MZ_INLINE void group_dots(Simd::I (&acc)[R][2], const uint8_t* codes, const int8_t* const (&x)[R]) {
  constexpr int kPairs = (R + 1) / 2;
  for (int half = 0; half < 2; ++half)
    for (int part = 0; part < 4; ++part) {  // four outputs at a time
      int32x4_t sums[kPairs][2];            // [pair][outputs 0-1, 2-3]: o0r0 o0r1 o1r0 o1r1
      for (auto& pair : sums) pair[0] = pair[1] = vdupq_n_s32(0);
      for (int s = 0; s < kGroup / 4; s += 2) {
        int32x4_t w[2];
        for (int i = 0; i < 2; ++i) {
          uint8x16_t v;
          if constexpr (kFormat == Format::kQ6) {
            const int step = (s + i) % 4;
            const uint8_t* at = codes + 192 * ((s + i) / 4 * 2 + half) + 16 * part;
            const uint8x16_t one = vld1q_u8(at + step % 3 * 64);
            v = step < 3 ? vandq_u8(one, vdupq_n_u8(63))
                         : Simd::last_of(one, vld1q_u8(at + 64), vld1q_u8(at + 128));
            v = vsubq_u8(v, vdupq_n_u8(32));
          } else if constexpr (kFormat == Format::kQ4) {
            v = vld1q_u8(codes + 64 * (s + i) + 16 * part);
            v = half ? vshrq_n_u8(v, 4) : vandq_u8(v, vdupq_n_u8(15));
          } else {
            v = vld1q_u8(codes + 128 * (s + i) + 64 * half + 16 * part);
            v = veorq_u8(v, vdupq_n_u8(128));
          }
          w[i] = vreinterpretq_s32_u8(v);
        }
        const int8x16_t w01 = vreinterpretq_s8_s32(vzip1q_s32(w[0], w[1]));
        const int8x16_t w23 = vreinterpretq_s8_s32(vzip2q_s32(w[0], w[1]));
        for (int p = 0; p < kPairs; ++p) {
          const int8x8_t first = vld1_s8(x[2 * p] + 4 * s);
          const int8x8_t second =
              2 * p + 1 < R ? vld1_s8(x[2 * p + 1 < R ? 2 * p + 1 : 0] + 4 * s) : vdup_n_s8(0);
          const int8x16_t rows = vcombine_s8(first, second);
          sums[p][0] = vmmlaq_s32(sums[p][0], w01, rows);
          sums[p][1] = vmmlaq_s32(sums[p][1], w23, rows);
        }
      }
      for (int p = 0; p < kPairs; ++p) {
        acc[2 * p][half].v[part] = vuzp1q_s32(sums[p][0], sums[p][1]);
        if (2 * p + 1 < R) acc[2 * p + 1][half].v[part] = vuzp2q_s32(sums[p][0], sums[p][1]);
      }
    }
}

}  // namespace
#endif

#include "kernels_impl.h"

namespace mezzotint {
#if defined(__ARM_FEATURE_MATMUL_INT8)
extern const Kernels kI8mm = table("i8mm");
#else
extern const Kernels kDotprod = table("dotprod");
#endif
}  // namespace mezzotint
