// Holds every kernel that runs here to the portable ones, and each to itself: a row's
// result may not depend on how many rows came with it. Prints a line a kernel; exits 1 on
// the first difference. Run under an emulator for another processor.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels.h"
#include "pack.h"

using namespace mezzotint;

namespace {

std::mt19937 random_bits(7);

std::vector<float> normal(int64_t count) {
  std::normal_distribution<float> draw;
  std::vector<float> out(count);
  for (float& x : out) x = draw(random_bits);
  return out;
}

void check(bool holds, const char* kernels, const char* what) {
  if (holds) return;
  std::printf("%s: %s differs\n", kernels, what);
  std::exit(1);
}

bool close(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::fabs(a[i] - b[i]) <= tolerance * (1 + std::fabs(b[i])))) return false;
  return true;
}

struct Activations {
  Activations(int m, int k) : f32(normal(int64_t(m) * k)), codes(f32.size()) { resize(m, k); }
  void resize(int m, int k) {
    for (auto* v : {&scale, &offset}) v->resize(int64_t(m) * k / kGroup);
    start.resize(scale.size());
    rows = {f32.data(), codes.data(), scale.data(), offset.data(), start.data(), k, m};
  }
  std::vector<float> f32, scale, offset;
  std::vector<int8_t> codes;
  std::vector<int32_t> start;
  Rows rows;
};

struct Weights {
  Weights(Format format, int n, int k) : matrix{nullptr, format, n, k} {
    const std::vector<float> w = normal(int64_t(n) * k);
    data.resize(matrix.bytes() + 64);
    matrix.data = data.data();
    for (int tile = 0; tile < matrix.tiles(); ++tile) {
      const float* rows[kTile];
      for (int j = 0; j < kTile; ++j) {
        const int row = tile * kTile + j;
        rows[j] = row < n ? w.data() + int64_t(row) * k : nullptr;
      }
      pack_tile(rows, k, format, data.data() + tile * matrix.tile_bytes());
    }
  }
  Matrix matrix;
  std::vector<uint8_t> data;
};

constexpr Format kFormats[] = {Format::kF32, Format::kBF16, Format::kQ8, Format::kQ4, Format::kQ6};

void test_products(const Kernels& k, const Kernels& portable) {
  const int m = 9, inputs = 160, n = 96;
  for (const Format format : kFormats) {
    const Weights w(format, n, inputs);
    Activations x(m, inputs);
    for (int i = 0; i < m; ++i) portable.quantize(x.rows.from(i), 0, inputs / kGroup);
    std::vector<float> ours(m * n), theirs(m * n), alone(m * n), half(m * n);
    k.gemm(w.matrix, x.rows, m, 0, 3, ours.data(), n, false);
    portable.gemm(w.matrix, x.rows, m, 0, 3, theirs.data(), n, false);
    check(close(ours, theirs, 1e-4f), k.name, "gemm");
    for (int i = 0; i < m; ++i)
      k.gemm(w.matrix, x.rows.from(i), 1, 0, 3, alone.data() + i * n, n, false);
    check(alone == ours, k.name, "gemm of a row alone");

    const Weights pairs(format, 128, inputs);
    Activations act(m, 64), act_alone(m, 64), act_portable(m, 64);
    k.gemm_glu(pairs.matrix, x.rows, m, 0, 2, act.rows);
    portable.gemm_glu(pairs.matrix, x.rows, m, 0, 2, act_portable.rows);
    check(close(act.f32, act_portable.f32, 1e-3f), k.name, "gemm_glu");
    for (int i = 0; i < m; ++i)
      k.gemm_glu(pairs.matrix, x.rows.from(i), 1, 0, 2, act_alone.rows.from(i));
    check(act.f32 == act_alone.f32 && act.codes == act_alone.codes, k.name, "glu of a row alone");
  }
}

void test_partial_tile(const Kernels& k) {
  const int inputs = 64, n = 40;
  const Weights w(Format::kQ4, n, inputs);
  Activations x(2, inputs);
  for (int i = 0; i < 2; ++i) k.quantize(x.rows.from(i), 0, 2);
  std::vector<float> out(2 * n + 8, 7.0f), twice(out);
  k.gemm(w.matrix, x.rows, 2, 0, 2, out.data(), n, false);
  check(out[2 * n] == 7.0f, k.name, "gemm past the last column");
  std::copy(out.begin(), out.end(), twice.begin());
  k.gemm(w.matrix, x.rows, 2, 0, 2, twice.data(), n, true);
  for (int i = 0; i < 2 * n; ++i) check(twice[i] == 2 * out[i], k.name, "accumulating gemm");
}

void test_rows(const Kernels& k, const Kernels& portable) {
  Activations a(1, 576), b(1, 576);
  b.f32 = a.f32;
  b.rows.f32 = b.f32.data();
  k.quantize(a.rows, 0, 18);
  portable.quantize(b.rows, 0, 18);
  check(a.codes == b.codes && a.scale == b.scale && a.start == b.start && a.offset == b.offset,
        k.name, "quantize");
  const std::vector<float> weight = normal(576);
  std::vector<float> ours(576), theirs(576);
  k.rmsnorm(a.f32.data(), weight.data(), 576, 1e-5f, ours.data());
  portable.rmsnorm(a.f32.data(), weight.data(), 576, 1e-5f, theirs.data());
  check(close(ours, theirs, 1e-5f), k.name, "rmsnorm");
}

void test_logits(const Kernels& k, const Kernels& portable) {
  for (const int n : {1, 15, 16, 261, 5003}) {
    std::vector<float> row = normal(n);
    const int best = portable.best(row.data(), n);
    check(k.best(row.data(), n) == best, k.name, "best");
    row.push_back(row[best]);  // of two that are the same, the first
    check(k.best(row.data(), n + 1) == best, k.name, "the first of the best");
    double mass = 0;
    for (int i = 0; i < n; ++i) mass += std::exp(double(row[i]) - row[best]);
    check(std::fabs(k.mass(row.data(), n, row[best]) / mass - 1) < 1e-6, k.name, "mass");
    std::vector<uint8_t> bits(n / 8 + 1);
    for (uint8_t& byte : bits) byte = uint8_t(random_bits());
    std::vector<float> held(row);
    k.allow(held.data(), n, bits.data());
    for (int i = 0; i < n; ++i)
      check(held[i] == (bits[i / 8] >> (i % 8) & 1 ? row[i] : -INFINITY), k.name, "allow");
    check(held[n] == row[n], k.name, "allow past the last");
  }
}

// softmax(q·k)·v in double, over the slots whose bit is set.
std::vector<float> plain_attention(const float* q, const std::vector<float>& keys,
                                   const std::vector<float>& values, int d, int slots,
                                   const std::vector<uint64_t>& visible) {
  std::vector<double> p(slots, 0.0), out(d, 0.0);
  double total = 0;
  for (int t = 0; t < slots; ++t) {
    if (!(visible[t / 64] >> (t % 64) & 1)) continue;
    double score = 0;
    for (int i = 0; i < d; ++i) score += double(q[i]) * keys[int64_t(t) * d + i];
    p[t] = std::exp(score);
    total += p[t];
  }
  for (int t = 0; t < slots; ++t)
    for (int i = 0; i < d; ++i) out[i] += p[t] / total * values[int64_t(t) * d + i];
  return {out.begin(), out.end()};
}

void test_attention(const Kernels& k, bool bf16, int d) {
  const int slots = 150, queries = 7, pages = 3;
  const int64_t bytes = int64_t(kPage) * d * (bf16 ? 2 : 4);
  std::vector<std::vector<uint8_t>> page(pages, std::vector<uint8_t>(2 * bytes));
  std::vector<uint8_t*> starts;
  for (auto& p : page) starts.push_back(p.data());
  const KvView kv{starts.data(), 0, bytes, d, slots, bf16};
  const std::vector<float> keys = normal(int64_t(slots) * d), values = normal(int64_t(slots) * d);
  for (int t = 0; t < slots; ++t) {
    k.store_key(kv, t, &keys[int64_t(t) * d]);
    k.store_value(kv, t, &values[int64_t(t) * d]);
  }

  std::vector<float> q = normal(int64_t(queries) * d), out(q.size()), alone(q.size());
  for (float& x : q) x /= std::sqrt(float(d));
  std::vector<std::vector<uint64_t>> visible(queries, std::vector<uint64_t>(pages, 0));
  std::vector<float> scratch(attend_scratch(slots, d));
  const float* query[kQueries];
  const uint64_t* bits[kQueries];
  float* to[kQueries];
  for (int i = 0; i < queries; ++i) {
    for (int t = 0; t < slots; ++t)
      if (t == i || random_bits() % 3) visible[i][t / 64] |= uint64_t(1) << (t % 64);
    query[i] = &q[int64_t(i) * d];
    bits[i] = visible[i].data();
    to[i] = &out[int64_t(i) * d];
  }
  k.attend(kv, query, queries, bits, scratch.data(), to);
  for (int i = 0; i < queries; ++i) {
    const auto want = plain_attention(query[i], keys, values, d, slots, visible[i]);
    check(close({to[i], to[i] + d}, want, bf16 ? 2e-2f : 1e-5f), k.name, "attention");
    float* one = &alone[int64_t(i) * d];
    k.attend(kv, query + i, 1, bits + i, scratch.data(), &one);
  }
  check(alone == out, k.name, "attention of a query alone");
}

}  // namespace

int main() {
  const Kernels& portable = *find_kernels("portable");
  for (const char* const* name = runnable_kernels(); *name; ++name) {
    const Kernels& k = *find_kernels(*name);
    test_products(k, portable);
    test_partial_tile(k);
    test_rows(k, portable);
    test_logits(k, portable);
    for (const int d : {32, 64, 96, 128})
      for (const bool bf16 : {false, true}) test_attention(k, bf16, d);
    std::printf("%s: right\n", *name);
  }
}
