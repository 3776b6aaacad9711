// Attention over paged keys and values. A query's result depends on the slots it sees and
// their order alone: unseen slots add exact zeros, and slots are walked in one order.
#pragma once
#include <cstring>

#include "kernels.h"

namespace {

// How keys, values, queries and probabilities lie in memory. kPair: elements of the inner
// sum that share a 32-bit lane.
struct Bf16 {
  using T = uint16_t;
  static constexpr int kPair = 2;
  static MZ_INLINE T of(float x) { return to_bf16(x); }
  static MZ_INLINE void put(T* p, F x) { Simd::store_bf16(p, x); }
  static MZ_INLINE F dot(F acc, const T* kv, B x) {
    return Simd::dot2(acc, Simd::bytes(reinterpret_cast<const uint8_t*>(kv)), x);
  }
  static MZ_INLINE B splat(const T* p) { return Simd::splat(p); }
};

struct Fp32 {
  using T = float;
  static constexpr int kPair = 1;
  static MZ_INLINE T of(float x) { return x; }
  static MZ_INLINE void put(T* p, F x) { Simd::store(p, x); }
  static MZ_INLINE F dot(F acc, const T* kv, F x) { return Simd::fma(Simd::load(kv), x, acc); }
  static MZ_INLINE F splat(const T* p) { return Simd::set(*p); }
};

// scores[q, 0..16·N) of N tiles of keys for Q queries; stride is the scores' row length.
template <class S, int Q, int N>
void tile_scores(const typename S::T* tiles, int head_dim, const typename S::T* queries,
                 float* scores, int64_t stride) {
  F acc[Q][N];
  for (auto& row : acc)
    for (auto& a : row) a = Simd::zero();
  for (int d = 0; d < head_dim; d += S::kPair)
    for (int q = 0; q < Q; ++q) {
      const auto x = S::splat(queries + int64_t(q) * head_dim + d);
      for (int t = 0; t < N; ++t)
        acc[q][t] = S::dot(acc[q][t], tiles + (int64_t(t) * head_dim + d) * 16, x);
    }
  for (int q = 0; q < Q; ++q)
    for (int t = 0; t < N; ++t) Simd::store(scores + q * stride + t * 16, acc[q][t]);
}

// The scores of a page's first `tokens` tokens, rounded up to whole tiles.
template <class S, int Q>
void page_scores(const typename S::T* keys, int head_dim, const typename S::T* queries,
                 float* scores, int64_t stride, int tokens) {
  constexpr int kWide = Simd::kKeyTiles * 16;
  int t = 0;
  for (; t + kWide <= tokens; t += kWide)
    tile_scores<S, Q, Simd::kKeyTiles>(keys + int64_t(t) * head_dim, head_dim, queries, scores + t,
                                       stride);
  for (; t < tokens; t += 16)
    tile_scores<S, Q, 1>(keys + int64_t(t) * head_dim, head_dim, queries, scores + t, stride);
}

// out[q, 0..16·N) += Σ over a page's tokens of p[q, t] · v[t]; acc lives in `out`.
template <class S, int Q, int N>
void page_values(const typename S::T* values, int head_dim, const typename S::T* probabilities,
                 int64_t stride, int tokens, float* const* out, int dim, bool first) {
  F acc[Q][N];
  for (int q = 0; q < Q; ++q)
    for (int n = 0; n < N; ++n)
      acc[q][n] = first ? Simd::zero() : Simd::load(out[q] + dim + 16 * n);
  for (int t = 0; t < tokens; t += S::kPair)
    for (int q = 0; q < Q; ++q) {
      const auto p = S::splat(probabilities + q * stride + t);
      for (int n = 0; n < N; ++n)
        acc[q][n] =
            S::dot(acc[q][n], values + int64_t(t) * head_dim + (dim + 16 * n) * S::kPair, p);
    }
  for (int q = 0; q < Q; ++q)
    for (int n = 0; n < N; ++n) Simd::store(out[q] + dim + 16 * n, acc[q][n]);
}

// scores → probabilities (unnormalised, rounded as S stores them); returns their sum.
template <class S>
float softmax_row(const float* scores, const uint64_t* visible, int slots,
                  typename S::T* probabilities) {
  const F never = Simd::set(-3.0e38f);
  const auto bits = [&](int t) { return uint32_t(visible[t >> 6] >> (t & 63)) & 0xffffu; };
  F highest = never;
  for (int t = 0; t < slots; t += 16)
    highest = Simd::max(highest, Simd::select(bits(t), Simd::load(scores + t), never));
  const F top = Simd::set(Simd::peak(highest));
  F total = Simd::zero();
  for (int t = 0; t < slots; t += 16) {
    F p = exp(Simd::sub(Simd::load(scores + t), top));
    p = Simd::select(bits(t), p, Simd::zero());
    total = Simd::add(total, p);
    S::put(probabilities + t, p);
  }
  return Simd::sum(total);
}

template <class S, int Q>
void attend_queries(const KvView& kv, const float* const* queries, const uint64_t* const* visible,
                    float* scratch, float* const* out) {
  using T = typename S::T;
  const int d = kv.head_dim, pages = (kv.slots + kPage - 1) / kPage;
  const int64_t stride = int64_t(pages) * kPage;
  float* scores = scratch;
  T* probabilities = reinterpret_cast<T*>(scratch + Q * stride);
  T* packed = reinterpret_cast<T*>(scratch + 2 * Q * stride);
  for (int q = 0; q < Q; ++q)
    for (int i = 0; i < d; i += 16) S::put(packed + q * d + i, Simd::load(queries[q] + i));

  const auto tokens_of = [&](int p) {
    return kv.slots - p * kPage < kPage ? kv.slots - p * kPage : kPage;
  };
  for (int p = 0; p < pages; ++p)
    page_scores<S, Q>(reinterpret_cast<const T*>(kv.pages[p] + kv.k_offset), d, packed,
                      scores + p * kPage, stride, tokens_of(p));
  float total[Q];
  for (int q = 0; q < Q; ++q)
    total[q] =
        softmax_row<S>(scores + q * stride, visible[q], kv.slots, probabilities + q * stride);
  for (int dim = 0; dim < d;) {
    const bool wide = d - dim >= 16 * Simd::kDims;
    for (int p = 0; p < pages; ++p) {
      const T* values = reinterpret_cast<const T*>(kv.pages[p] + kv.v_offset);
      const int tokens = tokens_of(p);
      if (wide)
        page_values<S, Q, Simd::kDims>(values, d, probabilities + p * kPage, stride, tokens, out,
                                       dim, p == 0);
      else
        page_values<S, Q, 1>(values, d, probabilities + p * kPage, stride, tokens, out, dim,
                             p == 0);
    }
    dim += wide ? 16 * Simd::kDims : 16;
  }
  for (int q = 0; q < Q; ++q) {
    const F inverse = Simd::set(1.0f / total[q]);
    for (int i = 0; i < d; i += 16)
      Simd::store(out[q] + i, Simd::mul(Simd::load(out[q] + i), inverse));
  }
}

template <class S>
void attend_as(const KvView& kv, const float* const* queries, int count,
               const uint64_t* const* visible, float* scratch, float* const* out) {
  for (int q = 0; q < count; q += 4) switch (count - q) {
      case 1:
        attend_queries<S, 1>(kv, queries + q, visible + q, scratch, out + q);
        break;
      case 2:
        attend_queries<S, 2>(kv, queries + q, visible + q, scratch, out + q);
        break;
      case 3:
        attend_queries<S, 3>(kv, queries + q, visible + q, scratch, out + q);
        break;
      default:
        attend_queries<S, 4>(kv, queries + q, visible + q, scratch, out + q);
    }
}

void attend(const KvView& kv, const float* const* queries, int count,
            const uint64_t* const* visible, float* scratch, float* const* out) {
  if (kv.bf16)
    attend_as<Bf16>(kv, queries, count, visible, scratch, out);
  else
    attend_as<Fp32>(kv, queries, count, visible, scratch, out);
}

template <class S>
void store_key_as(const KvView& kv, int slot, const float* key) {
  using T = typename S::T;
  constexpr int pair = S::kPair;
  const int t = slot % kPage, d = kv.head_dim;
  T* keys = reinterpret_cast<T*>(kv.pages[slot / kPage] + kv.k_offset);
  T* tile = keys + (t / 16) * 16 * d + (t % 16) * pair;
  for (int i = 0; i < d; i += pair) {
    T one[pair];
    for (int j = 0; j < pair; ++j) one[j] = S::of(key[i + j]);
    std::memcpy(tile + i * 16, one, sizeof one);
  }
}

template <class S>
void store_value_as(const KvView& kv, int slot, const float* value) {
  using T = typename S::T;
  constexpr int pair = S::kPair;
  const int t = slot % kPage, d = kv.head_dim;
  T* values = reinterpret_cast<T*>(kv.pages[slot / kPage] + kv.v_offset);
  T* token = values + (t / pair) * pair * d + t % pair;
  for (int i = 0; i < d; ++i) token[i * pair] = S::of(value[i]);
}

void store_key(const KvView& kv, int slot, const float* key) {
  kv.bf16 ? store_key_as<Bf16>(kv, slot, key) : store_key_as<Fp32>(kv, slot, key);
}

void store_value(const KvView& kv, int slot, const float* value) {
  kv.bf16 ? store_value_as<Bf16>(kv, slot, value) : store_value_as<Fp32>(kv, slot, value);
}

}  // namespace
