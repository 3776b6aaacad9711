// What an instruction set must provide. Each isa_*.cpp is compiled with its own flags and
// fills one table; dispatch.cpp picks a table at run time.
#pragma once
#include "common.h"

namespace mezzotint {

constexpr int kQueries = 8;  // queries that one attend call takes at most

struct Kernels {
  const char* name;

  // out[i, j] (+)= Σ_k rows[i, k] · w[j, k] for `m` rows and the outputs of tiles
  // [first, last). Integer sums inside a group, then float in the order of the groups: the
  // same bits for every m, every instruction set and every split over threads.
  void (*gemm)(const Matrix& w, const Rows& rows, int m, int first, int last, float* out,
               int64_t stride, bool accumulate);

  // The same for a weight whose tiles are gate and up by turns: silu(gate) · up of tile
  // pairs [first, last), written to `out` and quantised (a tile is a group).
  void (*gemm_glu)(const Matrix& w, const Rows& rows, int m, int first, int last, const Rows& out);

  // Fills codes, scale, offset and start of one row's groups [first, last) from its f32.
  void (*quantize)(const Rows& row, int first, int last);

  // The sum of the squares of kGroup values.
  float (*squares)(const float* x);

  // Group g of a row: x · inverse · weight (kGroup values), as floats and quantised.
  void (*normalize)(const Rows& row, int g, const float* x, const float* weight, float inverse);

  // y = x / sqrt(mean(x²) + eps) · weight, k values.
  void (*rmsnorm)(const float* x, const float* weight, int k, float eps, float* y);

  // softmax(q · kᵀ) · v for `count` (≤ kQueries) queries, already scaled. visible[i]: one
  // bit a slot. out[i]: head_dim floats. scratch: attend_scratch() floats.
  void (*attend)(const KvView& kv, const float* const* queries, int count,
                 const uint64_t* const* visible, float* scratch, float* const* out);

  // RoPE, rotate-half: pairs (d, d + half) of `head` turned by the angles' cos and sin (half).
  void (*rotate)(float* head, const float* cosine, const float* sine, int half);

  // One token's rotated key, or its value, into slot `slot`.
  void (*store_key)(const KvView& kv, int slot, const float* key);
  void (*store_value)(const KvView& kv, int slot, const float* value);

  // Of a row of logits: the first of the largest; Σ exp(x − top); −∞ where no bit is set.
  int (*best)(const float* x, int n);
  double (*mass)(const float* x, int n, float top);
  void (*allow)(float* x, int n, const uint8_t* bits);

  // Multiplies by an int4 tile that lies in the first cache; returns its int8 operations.
  double (*peak)(int iterations);
};

// Scores, probabilities and queries of one attend call, in floats.
constexpr int64_t attend_scratch(int64_t slots, int head_dim) {
  return kQueries * (2 * ((slots + kPage - 1) / kPage * kPage) + head_dim) + 16;
}

// The table called `name`, or the best that runs here for "". nullptr if there is none.
const Kernels* find_kernels(const char* name);

// Names of the tables that run here, best first, ended by nullptr.
const char* const* runnable_kernels();

}  // namespace mezzotint
