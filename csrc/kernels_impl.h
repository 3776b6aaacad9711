// The kernels, written once over a `Simd` of sixteen lanes. A file that includes this has
// defined Simd (and the flags it is compiled with) first. All of it is in an unnamed
// namespace, so no two instruction sets can share a copy.
#pragma once
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels.h"

namespace {

using namespace mezzotint;
using F = Simd::F;
using I = Simd::I;
using B = Simd::B;

constexpr int kSteps = kGroup / 4;  // groups of four inputs in a group

template <int N>
struct Constant {
  static constexpr int value = N;
};

// ---- products ---------------------------------------------------------------------

// What a row block prefetches while it computes: its share of a tile that comes later, so
// that memory works as steadily as the multipliers do.
struct Ahead {
  const uint8_t* at;
  int bytes;  // a group
  MZ_INLINE Ahead(const Matrix& w, int tile, int block, int blocks)
      : at(w.data + tile * w.tile_bytes()), bytes(static_cast<int>(w.group_bytes()) / blocks) {
    at += int64_t(block) * (w.k / kGroup) * bytes;
  }
  MZ_INLINE void next() {
    for (int line = 0; line < bytes; line += 64) __builtin_prefetch(at + line);
    at += bytes;
  }
};

#if !defined(MZ_OWN_TILE)
#if !defined(MZ_OWN_GROUP_DOTS)
template <int R>
MZ_INLINE void six_dots(I (&acc)[R][2], const uint8_t* codes, const int8_t* const (&x)[R]) {
  for (int part = 0; part < 4; ++part, codes += 192) {  // sixteen inputs by sixteen outputs
    const B b[3] = {Simd::bytes(codes), Simd::bytes(codes + 64), Simd::bytes(codes + 128)};
    for (int i = 0; i < 4; ++i) {
      const B w = i < 3 ? Simd::six(b[i]) : Simd::last_six(b[0], b[1], b[2]);
      for (int r = 0; r < R; ++r) {
        const B four = Simd::splat(x[r] + part / 2 * 16 + 4 * i);
        acc[r][part % 2] = Simd::dot_nibbles(acc[r][part % 2], w, four);
      }
    }
  }
}

// Integer dot products of R rows with a tile's 32 outputs, over one group.
template <int R, Format kFormat>
MZ_INLINE void group_dots(I (&acc)[R][2], const uint8_t* codes, const int8_t* const (&x)[R]) {
  if constexpr (kFormat == Format::kQ6) return six_dots<R>(acc, codes, x);
  for (int s = 0; s < kSteps; ++s) {
    B w0, w1;
    if constexpr (kFormat == Format::kQ4) {
      const B both = Simd::bytes(codes + 64 * s);
      w0 = Simd::low(both);
      w1 = Simd::high(both);
    } else {
      w0 = Simd::bytes(codes + 128 * s);
      w1 = Simd::bytes(codes + 128 * s + 64);
    }
    for (int r = 0; r < R; ++r) {
      const B four = Simd::splat(x[r] + 4 * s);
      if constexpr (kFormat == Format::kQ4) {
        acc[r][0] = Simd::dot_nibbles(acc[r][0], w0, four);
        acc[r][1] = Simd::dot_nibbles(acc[r][1], w1, four);
      } else {
        acc[r][0] = Simd::dot(acc[r][0], w0, four);
        acc[r][1] = Simd::dot(acc[r][1], w1, four);
      }
    }
  }
}
#endif

// Where a sum begins whose codes have an offset, from -128 · Σ inputs.
template <Format kFormat>
MZ_INLINE I start(int32_t from) {
  if constexpr (kFormat == Format::kQ8) return Simd::start(&from);
  if constexpr (kFormat == Format::kQ6) return Simd::ints(from / 4);
  return Simd::izero();
}

// out[r] = R rows by one tile. Per group g and output j, in this order:
//   out += (float(Σ q·x) · d[g, j]) · scale[r, g];  kQ4 also: out += m[g, j] · offset[r, g]
template <int R, Format kFormat>
MZ_INLINE void quantized_tile(F (&out)[R][2], const uint8_t* tile, const Rows& rows, Ahead ahead) {
  constexpr bool kNibbles = kFormat == Format::kQ4;
  constexpr int kBytes = static_cast<int>(Matrix{nullptr, kFormat}.group_bytes());
  const int groups = rows.k / kGroup;
  for (int g = 0; g < groups; ++g, tile += kBytes) {
    ahead.next();
    const int8_t* x[R];
    I acc[R][2];
    for (int r = 0; r < R; ++r) {
      x[r] = rows.codes + rows.at(r, g) * kGroup;
      acc[r][0] = acc[r][1] = start<kFormat>(rows.start[rows.at(r, g)]);
    }
    group_dots<R, kFormat>(acc, tile + (kNibbles ? 128 : 64), x);
    const F d0 = Simd::load_half(tile);
    F d1 = Simd::load_half(tile + 32);
    if constexpr (kNibbles && Simd::kHigh != 1.0f) d1 = Simd::mul(d1, Simd::set(1 / Simd::kHigh));
    for (int r = 0; r < R; ++r) {
      const F scale = Simd::set(rows.scale[rows.at(r, g)]);
      out[r][0] = Simd::fma(Simd::mul(Simd::to_float(acc[r][0]), d0), scale, out[r][0]);
      out[r][1] = Simd::fma(Simd::mul(Simd::to_float(acc[r][1]), d1), scale, out[r][1]);
    }
    if constexpr (kNibbles) {
      const F m0 = Simd::load_half(tile + 64), m1 = Simd::load_half(tile + 96);
      for (int r = 0; r < R; ++r) {
        const F offset = Simd::set(rows.offset[rows.at(r, g)]);
        out[r][0] = Simd::fma(m0, offset, out[r][0]);
        out[r][1] = Simd::fma(m1, offset, out[r][1]);
      }
    }
  }
}
#endif

template <int R, Format kFormat>
MZ_INLINE void float_tile(F (&out)[R][2], const uint8_t* tile, const Rows& rows) {
  constexpr int kWidth = kFormat == Format::kF32 ? 4 : 2;
  for (int k = 0; k < rows.k; ++k, tile += kTile * kWidth) {
    F w0, w1;
    if constexpr (kFormat == Format::kF32) {
      w0 = Simd::load(reinterpret_cast<const float*>(tile));
      w1 = Simd::load(reinterpret_cast<const float*>(tile) + 16);
    } else {
      w0 = Simd::load_bf16(tile);
      w1 = Simd::load_bf16(tile + 32);
    }
    for (int r = 0; r < R; ++r) {
      const F x = Simd::set(rows.f32[int64_t(r) * rows.k + k]);
      out[r][0] = Simd::fma(w0, x, out[r][0]);
      out[r][1] = Simd::fma(w1, x, out[r][1]);
    }
  }
}

template <int R>
MZ_INLINE void tile_product(F (&out)[R][2], const Matrix& w, int tile, const Rows& rows,
                            const Ahead& ahead) {
  const uint8_t* data = w.data + tile * w.tile_bytes();
  for (auto& row : out) row[0] = row[1] = Simd::zero();
  switch (w.format) {
    case Format::kQ4:
      return quantized_tile<R, Format::kQ4>(out, data, rows, ahead);
    case Format::kQ8:
      return quantized_tile<R, Format::kQ8>(out, data, rows, ahead);
    case Format::kQ6:
      return quantized_tile<R, Format::kQ6>(out, data, rows, ahead);
    case Format::kBF16:
      return float_tile<R, Format::kBF16>(out, data, rows);
    case Format::kF32:
      return float_tile<R, Format::kF32>(out, data, rows);
  }
}

// Writes a tile's columns; the last tile of a matrix may be partly padding.
MZ_INLINE void put(float* out, int columns, const F (&tile)[2], bool accumulate) {
  float whole[kTile];
  float* to = columns < kTile ? whole : out;
  for (int h = 0; h < 2; ++h) {
    const bool add = accumulate && columns == kTile;
    Simd::store(to + 16 * h, add ? Simd::add(tile[h], Simd::load(out + 16 * h)) : tile[h]);
  }
  if (to == whole)
    for (int j = 0; j < columns; ++j) out[j] = accumulate ? out[j] + whole[j] : whole[j];
}

template <int R>
void gemm_rows(const Matrix& w, const Rows& rows, int tile, float* out, int64_t stride,
               bool accumulate, const Ahead& ahead) {
  F acc[R][2];
  tile_product<R>(acc, w, tile, rows, ahead);
  const int columns = w.n - tile * kTile < kTile ? w.n - tile * kTile : kTile;
  for (int r = 0; r < R; ++r) put(out + r * stride + tile * kTile, columns, acc[r], accumulate);
}

// Calls each(row, count) for row blocks of nearly equal size, at most Simd::kRows, with the
// count as a constant.
template <class Fn>
MZ_INLINE void row_blocks(int m, Fn&& each) {
  const int blocks = (m + Simd::kRows - 1) / Simd::kRows;
  for (int b = 0, row = 0; b < blocks; ++b) {
    const int count = (m - row + blocks - b - 1) / (blocks - b);
    const auto with = [&](auto constant) {
      if constexpr (constant.value <= Simd::kRows)
        if (count == constant.value) each(constant, row, b, blocks);
    };
    with(Constant<1>{}), with(Constant<2>{}), with(Constant<3>{});
    with(Constant<4>{}), with(Constant<5>{}), with(Constant<6>{});
    row += count;
  }
}

void gemm(const Matrix& w, const Rows& rows, int m, int first, int last, float* out, int64_t stride,
          bool accumulate) {
  for (int tile = first; tile < last; ++tile)
    row_blocks(m, [&](auto count, int row, int block, int blocks) {
      const Ahead ahead(w, tile + 1, block, blocks);
      gemm_rows<count.value>(w, rows.from(row), tile, out + row * stride, stride, accumulate,
                             ahead);
    });
}

// ---- elementwise ------------------------------------------------------------------

// eˣ by 2ⁿ · p(r), r in ±ln2/2; p is the Taylor polynomial of degree 7 (error < 2⁻²⁴).
MZ_INLINE F exp(F x) {
  x = Simd::max(x, Simd::set(-87.0f));
  const F n = Simd::round(Simd::mul(x, Simd::set(1.44269504f)));
  F r = Simd::fma(n, Simd::set(-0.693359375f), x);
  r = Simd::fma(n, Simd::set(2.12194440e-4f), r);
  F p = Simd::set(1.0f / 5040);
  p = Simd::fma(p, r, Simd::set(1.0f / 720));
  p = Simd::fma(p, r, Simd::set(1.0f / 120));
  p = Simd::fma(p, r, Simd::set(1.0f / 24));
  p = Simd::fma(p, r, Simd::set(1.0f / 6));
  p = Simd::fma(p, r, Simd::set(0.5f));
  p = Simd::fma(p, r, Simd::set(1.0f));
  p = Simd::fma(p, r, Simd::set(1.0f));
  return Simd::scale2(p, n);
}

void quantize(const Rows& row, int first, int last) {
  for (int g = first; g < last; ++g) {
    const int64_t at = row.at(0, g);
    const F a = Simd::load(row.f32 + g * kGroup), b = Simd::load(row.f32 + g * kGroup + 16);
    const float largest = Simd::peak(Simd::max(Simd::abs(a), Simd::abs(b)));
    const F inverse = Simd::set(largest > 0 ? 127.0f / largest : 0.0f);
    const int32_t sum =
        Simd::store_codes(row.codes + at * kGroup, Simd::mul(a, inverse), Simd::mul(b, inverse));
    row.start[at] = -128 * sum;
    row.scale[at] = largest * (1.0f / 127.0f);
    row.offset[at] = row.scale[at] * static_cast<float>(sum);
  }
}

float squares(const float* x) {
  const F a = Simd::load(x), b = Simd::load(x + 16);
  return Simd::sum(Simd::fma(b, b, Simd::mul(a, a)));
}

void normalize(const Rows& row, int g, const float* x, const float* weight, float inverse) {
  const F scale = Simd::set(inverse);
  for (int i = 0; i < kGroup; i += 16)
    Simd::store(row.f32 + g * kGroup + i,
                Simd::mul(Simd::mul(Simd::load(x + i), scale), Simd::load(weight + i)));
  quantize(row, g, g + 1);
}

void rotate(float* head, const float* cosine, const float* sine, int half) {
  for (int d = 0; d < half; d += 16) {
    const F a = Simd::load(head + d), b = Simd::load(head + d + half);
    const F c = Simd::load(cosine + d), s = Simd::load(sine + d);
    Simd::store(head + d, Simd::sub(Simd::mul(a, c), Simd::mul(b, s)));
    Simd::store(head + d + half, Simd::add(Simd::mul(b, c), Simd::mul(a, s)));
  }
}

void rmsnorm(const float* x, const float* weight, int k, float eps, float* y) {
  F squares = Simd::zero();
  for (int i = 0; i < k; i += 16) {
    const F v = Simd::load(x + i);
    squares = Simd::fma(v, v, squares);
  }
  const F inverse = Simd::set(1.0f / std::sqrt(Simd::sum(squares) / static_cast<float>(k) + eps));
  for (int i = 0; i < k; i += 16)
    Simd::store(y + i, Simd::mul(Simd::mul(Simd::load(x + i), inverse), Simd::load(weight + i)));
}

// ---- a row of logits --------------------------------------------------------------

constexpr float kNever = -std::numeric_limits<float>::infinity();

// x[i ..], as many as there are of n, then -inf.
MZ_INLINE F load_some(const float* x, int i, int n) {
  if (i + 16 <= n) return Simd::load(x + i);
  float some[16];
  for (int j = 0; j < 16; ++j) some[j] = i + j < n ? x[i + j] : kNever;
  return Simd::load(some);
}

int best(const float* x, int n) {
  F tops = Simd::set(kNever);
  for (int i = 0; i < n; i += 16) tops = Simd::max(tops, load_some(x, i, n));
  const float top = Simd::peak(tops);
  for (int i = 0; i < n; ++i)
    if (x[i] == top) return i;
  return 0;
}

double mass(const float* x, int n, float top) {
  constexpr int kRun = 1024;  // so many are summed in float
  const F shift = Simd::set(top);
  double total = 0;
  for (int first = 0; first < n; first += kRun) {
    F sum = Simd::zero();
    for (int i = first; i < n && i < first + kRun; i += 16)
      sum = Simd::add(sum, exp(Simd::sub(load_some(x, i, n), shift)));
    total += Simd::sum(sum);
  }
  return total;
}

void allow(float* x, int n, const uint8_t* bits) {
  int i = 0;
  for (; i + 16 <= n; i += 16) {
    const uint32_t sixteen = bits[i / 8] | uint32_t(bits[i / 8 + 1]) << 8;
    Simd::store(x + i, Simd::select(sixteen, Simd::load(x + i), Simd::set(kNever)));
  }
  for (; i < n; ++i)
    if (!(bits[i / 8] >> (i % 8) & 1)) x[i] = kNever;
}

template <int R>
void glu_rows(const Matrix& w, const Rows& rows, int pair, const Rows& out, const Ahead& gates,
              const Ahead& ups) {
  F gate[R][2], up[R][2];
  tile_product<R>(gate, w, 2 * pair, rows, gates);
  tile_product<R>(up, w, 2 * pair + 1, rows, ups);
  for (int r = 0; r < R; ++r) {
    const Rows row = out.from(r);
    for (int h = 0; h < 2; ++h) {
      const F one = Simd::set(1.0f);
      const F down = Simd::add(one, exp(Simd::sub(Simd::zero(), gate[r][h])));
      Simd::store(row.f32 + pair * kTile + 16 * h,
                  Simd::mul(Simd::div(gate[r][h], down), up[r][h]));
    }
    quantize(row, pair, pair + 1);
  }
}

void gemm_glu(const Matrix& w, const Rows& rows, int m, int first, int last, const Rows& out) {
  for (int pair = first; pair < last; ++pair)
    row_blocks(m, [&](auto count, int row, int block, int blocks) {
      const Ahead gates(w, 2 * pair + 2, block, blocks), ups(w, 2 * pair + 3, block, blocks);
      glu_rows<count.value>(w, rows.from(row), pair, out.from(row), gates, ups);
    });
}

}  // namespace

#include "attention_impl.h"

namespace {

double peak(int iterations) {
  constexpr int kInputs = 8 * kGroup;
  std::vector<uint8_t> codes(kTile * kInputs);
  std::vector<float> floats(Simd::kRows * kInputs), out(Simd::kRows * kTile);
  std::vector<int8_t> inputs(floats.size());
  std::vector<int32_t> start(floats.size());
  const Matrix w{codes.data(), Format::kQ4, kTile, kInputs};
  const Rows rows{floats.data(), inputs.data(), floats.data(), floats.data(),
                  start.data(),  kInputs,       Simd::kRows};
  for (int i = 0; i < iterations; ++i) gemm(w, rows, Simd::kRows, 0, 1, out.data(), kTile, false);
  return 2.0 * Simd::kRows * kTile * kInputs * iterations;
}

constexpr Kernels table(const char* name) {
  return {name,   gemm,      gemm_glu,    quantize, squares, normalize, rmsnorm, attend,
          rotate, store_key, store_value, best,     mass,    allow,     peak};
}

}  // namespace
