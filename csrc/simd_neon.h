// Sixteen lanes in four registers: ARM64 NEON with the dot product instructions.
#pragma once
#include <arm_neon.h>

#include "common.h"

namespace {

struct Simd {
  struct F {
    float32x4_t v[4];
  };
  struct I {
    int32x4_t v[4];
  };
  struct B {
    uint8x16_t v[4];
  };
  static constexpr int kRows = 4;  // rows a GEMM step computes at most
  static constexpr int kKeyTiles = 1;
  static constexpr int kDims = 1;
  static constexpr float kHigh = 1.0f;

#define MZ_EACH(T, expression)                     \
  T r;                                             \
  for (int i = 0; i < 4; ++i) r.v[i] = expression; \
  return r
  static MZ_INLINE F zero() { MZ_EACH(F, vdupq_n_f32(0)); }
  static MZ_INLINE F set(float x) { MZ_EACH(F, vdupq_n_f32(x)); }
  static MZ_INLINE F load(const float* p) { MZ_EACH(F, vld1q_f32(p + 4 * i)); }
  static MZ_INLINE void store(float* p, F x) {
    for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, x.v[i]);
  }
  static MZ_INLINE F load_half(const uint8_t* p) {
    MZ_EACH(F, vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p + 8 * i))));
  }
  static MZ_INLINE F load_bf16(const uint8_t* p) {
    MZ_EACH(F, vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p + 8 * i)), 16)));
  }
  static MZ_INLINE F add(F a, F b) { MZ_EACH(F, vaddq_f32(a.v[i], b.v[i])); }
  static MZ_INLINE F sub(F a, F b) { MZ_EACH(F, vsubq_f32(a.v[i], b.v[i])); }
  static MZ_INLINE F mul(F a, F b) { MZ_EACH(F, vmulq_f32(a.v[i], b.v[i])); }
  static MZ_INLINE F div(F a, F b) { MZ_EACH(F, vdivq_f32(a.v[i], b.v[i])); }
  static MZ_INLINE F max(F a, F b) { MZ_EACH(F, vmaxq_f32(a.v[i], b.v[i])); }
  static MZ_INLINE F abs(F a) { MZ_EACH(F, vabsq_f32(a.v[i])); }
  static MZ_INLINE F fma(F a, F b, F c) { MZ_EACH(F, vfmaq_f32(c.v[i], a.v[i], b.v[i])); }
  static MZ_INLINE F round(F a) { MZ_EACH(F, vrndnq_f32(a.v[i])); }
  static MZ_INLINE F scale2(F a, F n) {
    MZ_EACH(F, vmulq_f32(a.v[i], vreinterpretq_f32_s32(vshlq_n_s32(
                                     vaddq_s32(vcvtnq_s32_f32(n.v[i]), vdupq_n_s32(127)), 23))));
  }
  static MZ_INLINE F select(uint32_t bits, F a, F b) {
    static const uint32_t one[4] = {1, 2, 4, 8};
    const uint32x4_t which = vld1q_u32(one);
    MZ_EACH(F, vbslq_f32(vtstq_u32(vdupq_n_u32(bits >> (4 * i)), which), a.v[i], b.v[i]));
  }
  static MZ_INLINE int8x16_t codes(F x) {
    int16x4_t words[4];
    for (int i = 0; i < 4; ++i) words[i] = vqmovn_s32(vcvtnq_s32_f32(x.v[i]));
    return vcombine_s8(vqmovn_s16(vcombine_s16(words[0], words[1])),
                       vqmovn_s16(vcombine_s16(words[2], words[3])));
  }
  // 32 codes, rounded from a and b; returns their sum.
  static MZ_INLINE int32_t store_codes(int8_t* p, F a, F b) {
    const int8x16_t low = codes(a), high = codes(b);
    vst1q_s8(p, low);
    vst1q_s8(p + 16, high);
    return vaddlvq_s8(low) + vaddlvq_s8(high);
  }
  static MZ_INLINE void store_bf16(uint16_t* p, F x) {
    for (int i = 0; i < 4; ++i) {
      const uint32x4_t bits = vreinterpretq_u32_f32(x.v[i]);
      const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
      vst1_u16(p + 4 * i, vshrn_n_u32(vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd), 16));
    }
  }

  static MZ_INLINE I izero() { MZ_EACH(I, vdupq_n_s32(0)); }
  static MZ_INLINE I start(const int32_t*) { return izero(); }
  static MZ_INLINE I ints(int32_t x) { MZ_EACH(I, vdupq_n_s32(x)); }
  static MZ_INLINE F to_float(I a) { MZ_EACH(F, vcvtq_f32_s32(a.v[i])); }
  static MZ_INLINE B bytes(const uint8_t* p) { MZ_EACH(B, vld1q_u8(p + 16 * i)); }
  static MZ_INLINE B low(B b) { MZ_EACH(B, vandq_u8(b.v[i], vdupq_n_u8(15))); }
  static MZ_INLINE B high(B b) { MZ_EACH(B, vshrq_n_u8(b.v[i], 4)); }
  static MZ_INLINE B six(B b) { MZ_EACH(B, vandq_u8(b.v[i], vdupq_n_u8(63))); }
  static MZ_INLINE uint8x16_t last_of(uint8x16_t x, uint8x16_t y, uint8x16_t z) {
    const uint8x16_t high = vsliq_n_u8(vshrq_n_u8(y, 6), vshrq_n_u8(z, 6), 2);
    return vsliq_n_u8(vshrq_n_u8(x, 6), high, 2);
  }
  static MZ_INLINE B last_six(B x, B y, B z) { MZ_EACH(B, last_of(x.v[i], y.v[i], z.v[i])); }
  static MZ_INLINE B splat(const void* four) {
    const uint8x16_t x = vreinterpretq_u8_s32(vdupq_n_s32(*static_cast<const int32_t*>(four)));
    return {{x, x, x, x}};
  }
  static MZ_INLINE I dot_nibbles(I acc, B w, B x) {
    MZ_EACH(I, vdotq_s32(acc.v[i], vreinterpretq_s8_u8(w.v[i]), vreinterpretq_s8_u8(x.v[i])));
  }
  static MZ_INLINE I dot(I acc, B w, B x) {  // q + 128 to q: flip the top bit
    for (auto& bytes : w.v) bytes = veorq_u8(bytes, vdupq_n_u8(128));
    return dot_nibbles(acc, w, x);
  }
  static MZ_INLINE F dot2(F acc, B pairs, B x) {
    const uint32x4_t odd = vdupq_n_u32(0xffff0000u);
    for (int i = 0; i < 4; ++i) {
      const uint32x4_t p = vreinterpretq_u32_u8(pairs.v[i]), q = vreinterpretq_u32_u8(x.v[i]);
      acc.v[i] = vfmaq_f32(acc.v[i], vreinterpretq_f32_u32(vandq_u32(p, odd)),
                           vreinterpretq_f32_u32(vandq_u32(q, odd)));
      acc.v[i] = vfmaq_f32(acc.v[i], vreinterpretq_f32_u32(vshlq_n_u32(p, 16)),
                           vreinterpretq_f32_u32(vshlq_n_u32(q, 16)));
    }
    return acc;
  }
  static MZ_INLINE float sum(F a) {
    return vaddvq_f32(vaddq_f32(vaddq_f32(a.v[0], a.v[1]), vaddq_f32(a.v[2], a.v[3])));
  }
  static MZ_INLINE float peak(F a) {
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(a.v[0], a.v[1]), vmaxq_f32(a.v[2], a.v[3])));
  }
#undef MZ_EACH
};

}  // namespace
