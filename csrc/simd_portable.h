// Sixteen lanes as plain arrays, for any processor. The other kernels are tested against it.
#pragma once
#include <cmath>
#include <cstring>

#include "common.h"

namespace {

struct Simd {
  struct F {
    float v[16];
  };
  struct I {
    int32_t v[16];
  };
  struct B {
    uint8_t v[64];
  };
  static constexpr int kRows = 4;  // rows a GEMM step computes at most
  static constexpr int kKeyTiles = 1;
  static constexpr int kDims = 1;
  static constexpr float kHigh = 1.0f;

#define MZ_EACH(expression)                         \
  F r;                                              \
  for (int i = 0; i < 16; ++i) r.v[i] = expression; \
  return r
  static MZ_INLINE F zero() { return F{}; }
  static MZ_INLINE F set(float x) { MZ_EACH(x); }
  static MZ_INLINE F load(const float* p) { MZ_EACH(p[i]); }
  static MZ_INLINE void store(float* p, F x) { std::memcpy(p, x.v, sizeof x.v); }
  static MZ_INLINE F load_bf16(const uint8_t* p) {
    F r;
    for (int i = 0; i < 16; ++i) {
      const uint32_t bits = uint32_t(p[2 * i]) << 16 | uint32_t(p[2 * i + 1]) << 24;
      std::memcpy(&r.v[i], &bits, 4);
    }
    return r;
  }
  static MZ_INLINE F load_half(const uint8_t* p) {
    F r;
    for (int i = 0; i < 16; ++i) {
      const uint32_t h = p[2 * i] | uint32_t(p[2 * i + 1]) << 8;
      const uint32_t bits = (h & 0x8000) << 16 | (h & 0x7fff) << 13;  // exponent short by 112
      float x;
      std::memcpy(&x, &bits, 4);
      r.v[i] = x * 5.192296858534828e+33f;  // 2¹¹², exact; also right for subnormals
    }
    return r;
  }
  static MZ_INLINE F add(F a, F b) { MZ_EACH(a.v[i] + b.v[i]); }
  static MZ_INLINE F sub(F a, F b) { MZ_EACH(a.v[i] - b.v[i]); }
  static MZ_INLINE F mul(F a, F b) { MZ_EACH(a.v[i] * b.v[i]); }
  static MZ_INLINE F div(F a, F b) { MZ_EACH(a.v[i] / b.v[i]); }
  static MZ_INLINE F max(F a, F b) { MZ_EACH(a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
  static MZ_INLINE F abs(F a) { MZ_EACH(std::fabs(a.v[i])); }
  static MZ_INLINE F round(F a) { MZ_EACH(std::nearbyint(a.v[i])); }
#if defined(FP_FAST_FMAF)
  static MZ_INLINE F fma(F a, F b, F c) { MZ_EACH(std::fma(a.v[i], b.v[i], c.v[i])); }
#else  // a call a lane would be slower than the second rounding is worth
  static MZ_INLINE F fma(F a, F b, F c) { MZ_EACH(a.v[i] * b.v[i] + c.v[i]); }
#endif
  static MZ_INLINE F scale2(F a, F n) {
    F r;
    for (int i = 0; i < 16; ++i) {
      const uint32_t bits = uint32_t(static_cast<int>(n.v[i]) + 127) << 23;
      float power;
      std::memcpy(&power, &bits, 4);
      r.v[i] = a.v[i] * power;
    }
    return r;
  }
  static MZ_INLINE F select(uint32_t bits, F a, F b) { MZ_EACH(bits >> i & 1 ? a.v[i] : b.v[i]); }
  // 32 codes, rounded from a and b; returns their sum.
  static MZ_INLINE int32_t store_codes(int8_t* p, F a, F b) {
    int32_t sum = 0;
    for (int i = 0; i < 32; ++i) {
      p[i] = static_cast<int8_t>(std::nearbyint(i < 16 ? a.v[i] : b.v[i - 16]));
      sum += p[i];
    }
    return sum;
  }
  static MZ_INLINE void store_bf16(uint16_t* p, F x) {
    for (int i = 0; i < 16; ++i) p[i] = mezzotint::to_bf16(x.v[i]);
  }

  static MZ_INLINE I izero() { return I{}; }
  static MZ_INLINE I start(const int32_t*) { return I{}; }
  static MZ_INLINE I ints(int32_t x) {
    I r;
    for (auto& lane : r.v) lane = x;
    return r;
  }
  static MZ_INLINE F to_float(I a) { MZ_EACH(static_cast<float>(a.v[i])); }
#undef MZ_EACH
  static MZ_INLINE B bytes(const uint8_t* p) {
    B r;
    std::memcpy(r.v, p, 64);
    return r;
  }
  static MZ_INLINE B low(B b) {
    for (auto& x : b.v) x &= 15;
    return b;
  }
  static MZ_INLINE B high(B b) {
    for (auto& x : b.v) x >>= 4;
    return b;
  }
  static MZ_INLINE B six(B b) {
    for (auto& x : b.v) x &= 63;
    return b;
  }
  static MZ_INLINE B last_six(B x, B y, B z) {
    for (int i = 0; i < 64; ++i)
      x.v[i] = static_cast<uint8_t>(x.v[i] >> 6 | y.v[i] >> 6 << 2 | z.v[i] >> 6 << 4);
    return x;
  }
  static MZ_INLINE B splat(const void* four) {
    B r;
    for (int i = 0; i < 16; ++i) std::memcpy(r.v + 4 * i, four, 4);
    return r;
  }
  static MZ_INLINE I dot(I acc, B w, B x) { return dot_less(acc, w, x, 128); }
  static MZ_INLINE I dot_nibbles(I acc, B w, B x) { return dot_less(acc, w, x, 0); }
  static MZ_INLINE I dot_less(I acc, B w, B x, int offset) {
    for (int i = 0; i < 16; ++i)
      for (int j = 4 * i; j < 4 * i + 4; ++j)
        acc.v[i] += (w.v[j] - offset) * static_cast<int8_t>(x.v[j]);
    return acc;
  }
  static MZ_INLINE F dot2(F acc, B pairs, B x) {
    for (int i = 0; i < 16; ++i)
      for (int j = 1; j >= 0; --j) acc.v[i] += half(pairs, 2 * i + j) * half(x, 2 * i + j);
    return acc;
  }
  static MZ_INLINE float half(const B& b, int i) {
    const uint32_t bits = uint32_t(b.v[2 * i]) << 16 | uint32_t(b.v[2 * i + 1]) << 24;
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
  }
  static MZ_INLINE float sum(F a) {
    for (int width = 8; width; width /= 2)
      for (int i = 0; i < width; ++i) a.v[i] += a.v[i + width];
    return a.v[0];
  }
  static MZ_INLINE float peak(F a) {
    for (float x : a.v) a.v[0] = x > a.v[0] ? x : a.v[0];
    return a.v[0];
  }
};

}  // namespace
