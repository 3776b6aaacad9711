// The Python face of the core. It checks sizes and indices, so that a mistake above is an
// exception and not a crash, and releases the GIL around everything that takes time.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "model.h"
#include "pack.h"

namespace nb = nanobind;
using namespace mezzotint;

namespace {

template <class T, int N>
using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

template <class T>
nb::ndarray<nb::numpy, T> new_array(std::vector<size_t> shape) {
  size_t count = 1;
  for (size_t n : shape) count *= n;
  T* data = new T[count];
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner);
}

void require(bool holds, const char* what) {
  if (!holds) throw nb::value_error(what);
}

const Kernels& kernels_named(const std::string& name) {
  const Kernels* found = find_kernels(name.c_str());
  require(found != nullptr, "no such kernels on this processor");
  return *found;
}

Matrix matrix_of(In<uint8_t, 1> data, Format format, int n, int k) {
  const Matrix w{data.data(), format, n, k};
  require(k > 0 && k % kGroup == 0, "inputs must be a multiple of 32");
  require(w.bytes() == int64_t(data.size()), "packed size does not fit the shape");
  return w;
}

// (n, k) float32 → packed bytes, on all threads of the pool.
auto pack(In<float, 2> w, Format format, Pool& pool) {
  const Matrix shape{nullptr, format, int(w.shape(0)), int(w.shape(1))};
  require(shape.k > 0 && shape.k % kGroup == 0, "inputs must be a multiple of 32");
  auto out = new_array<uint8_t>({size_t(shape.bytes())});
  uint8_t* to = out.data();
  const float* from = w.data();
  nb::gil_scoped_release release;
  parallel(pool, shape.tiles(), [&](int tile) {
    const float* rows[kTile];
    for (int j = 0; j < kTile; ++j) {
      const int row = tile * kTile + j;
      rows[j] = row < shape.n ? from + int64_t(row) * shape.k : nullptr;
    }
    pack_tile(rows, shape.k, format, to + tile * shape.tile_bytes());
  });
  return out;
}

auto unpack(In<uint8_t, 1> data, Format format, int n, int k) {
  const Matrix w = matrix_of(data, format, n, k);
  auto out = new_array<float>({size_t(n), size_t(k)});
  for (int j = 0; j < n; ++j) unpack_row(w, j, out.data() + int64_t(j) * k);
  return out;
}

// x (m, k) by packed w (n, k) with one instruction set's kernels, for tests and benchmarks.
auto product(In<float, 2> x, In<uint8_t, 1> data, Format format, int n, const std::string& name) {
  const int m = int(x.shape(0)), k = int(x.shape(1));
  const Matrix w = matrix_of(data, format, n, k);
  const Kernels& kernels = kernels_named(name);
  std::vector<float> f32(x.data(), x.data() + x.size()), scale(m * k / kGroup), offset(scale);
  std::vector<int8_t> codes(f32.size());
  std::vector<int32_t> start(scale.size());
  const Rows rows{f32.data(), codes.data(), scale.data(), offset.data(), start.data(), k, m};
  for (int i = 0; i < m; ++i) kernels.quantize(rows.from(i), 0, k / kGroup);
  auto out = new_array<float>({size_t(m), size_t(n)});
  kernels.gemm(w, rows, m, 0, w.tiles(), out.data(), n, false);
  return out;
}

// The packed buffer and its model; the buffer lives as long as any session.
struct Owner {
  ~Owner() {
    if (model.pool) model.pool->quiet();
  }
  In<uint8_t, 1> buffer;
  Model model;
};

class Builder {
 public:
  Builder(In<uint8_t, 1> buffer, nb::dict layout) : buffer_(buffer), layout_(layout) {}

  Matrix matrix(const std::string& name, Format format, int n, int k) const {
    const Matrix w{at(name), format, n, k};
    check(name, w.bytes());
    return w;
  }
  const float* vector(const std::string& name, int n) const {
    if (!layout_.contains(name.c_str())) return nullptr;
    check(name, 4 * int64_t(n));
    return reinterpret_cast<const float*>(at(name));
  }

 private:
  const uint8_t* at(const std::string& name) const {
    return buffer_.data() + nb::cast<int64_t>(layout_[name.c_str()]);
  }
  void check(const std::string& name, int64_t bytes) const {
    const int64_t offset = nb::cast<int64_t>(layout_[name.c_str()]);
    if (offset < 0 || offset % 64 || offset + bytes > int64_t(buffer_.size()))
      throw nb::value_error(("packed tensor out of bounds: " + name).c_str());
  }

  In<uint8_t, 1> buffer_;
  nb::dict layout_;
};

int field(const nb::dict& spec, const char* name) { return nb::cast<int>(spec[name]); }

std::shared_ptr<const Model> build(In<uint8_t, 1> buffer, nb::dict layout, nb::dict spec,
                                   In<float, 1> inverse_frequency, std::shared_ptr<Pool> pool) {
  auto owner = std::make_shared<Owner>();
  owner->buffer = buffer;
  Model& m = owner->model;
  m.hidden = field(spec, "hidden");
  m.heads = field(spec, "heads");
  m.kv_heads = field(spec, "kv_heads");
  m.head_dim = field(spec, "head_dim");
  m.ffn = field(spec, "ffn");
  m.vocab = field(spec, "vocab");
  m.eps = nb::cast<float>(spec["rms_eps"]);
  m.rope_factor = nb::cast<float>(spec["rope_factor"]);
  m.bf16_kv = nb::cast<bool>(spec["bf16_kv"]);
  m.kernels = &kernels_named(nb::cast<std::string>(spec["kernels"]));
  m.pool = std::move(pool);
  require(m.head_dim > 0 && m.head_dim % kGroup == 0 && m.hidden % kGroup == 0 &&
              m.ffn % kGroup == 0 && m.kv_heads > 0 && m.heads % m.kv_heads == 0,
          "sizes must be multiples of 32, and heads of KV heads");
  require(int(inverse_frequency.size()) == m.head_dim / 2, "one frequency for two dimensions");
  m.inverse_frequency.assign(inverse_frequency.data(), inverse_frequency.data() + m.head_dim / 2);

  const auto format = Format(field(spec, "format")), head = Format(field(spec, "head_format"));
  const Builder read(buffer, layout);
  const int q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  m.layers.resize(field(spec, "layers"));
  for (size_t i = 0; i < m.layers.size(); ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    m.layers[i] = {read.matrix(at + "qkv", format, q + 2 * kv, m.hidden),
                   read.matrix(at + "o", format, m.hidden, q),
                   read.matrix(at + "gate_up", format, 2 * m.ffn, m.hidden),
                   read.matrix(at + "down", format, m.hidden, m.ffn),
                   read.vector(at + "attn_norm", m.hidden),
                   read.vector(at + "ffn_norm", m.hidden),
                   read.vector(at + "qkv_bias", q + 2 * kv),
                   read.vector(at + "q_norm", m.head_dim),
                   read.vector(at + "k_norm", m.head_dim)};
    require(m.layers[i].attn_norm && m.layers[i].ffn_norm, "a layer lacks a norm");
  }
  m.embed = read.matrix("embed", head, m.vocab, m.hidden);
  m.head = read.matrix("head", head, m.vocab, m.hidden);
  m.norm = read.vector("norm", m.hidden);
  require(m.norm != nullptr, "the model lacks its last norm");
  return std::shared_ptr<const Model>(owner, &owner->model);
}

// tokens, positions, kind, matrix, hide_first, hide_last, want
using Asked = std::tuple<In<int32_t, 1>, In<int32_t, 1>, int, std::optional<In<bool, 2>>, int, int,
                         In<int32_t, 1>>;

Part part_of(const Asked& asked, int vocab) {
  const auto& [tokens, positions, kind, matrix, hide_first, hide_last, want] = asked;
  const int m = int(tokens.size()), wanted = int(want.size());
  require(m > 0 && int(positions.size()) == m, "a pass has rows, each with a position");
  for (int i = 0; i < m; ++i) {
    require(tokens.data()[i] >= 0 && tokens.data()[i] < vocab, "token outside the vocabulary");
    require(positions.data()[i] >= 0, "a position is not negative");
  }
  for (int i = 0; i < wanted; ++i)
    require(want.data()[i] >= 0 && want.data()[i] < m, "a wanted row is not in the pass");
  Visibility visible{Visibility::Kind(kind), nullptr, hide_first, hide_last};
  if (kind == Visibility::kMatrix) {
    require(matrix && int(matrix->shape(0)) == m && int(matrix->shape(1)) == m,
            "visibility must be (M, M)");
    visible.matrix = matrix->data();
  }
  return {tokens.data(), positions.data(), m, visible, want.data(), wanted};
}

// One pass for several sessions: logits of all wanted rows, session after session.
auto score(const std::vector<std::shared_ptr<Session>>& sessions, const std::vector<Asked>& asked) {
  require(!sessions.empty() && sessions.size() == asked.size(), "each session has rows");
  const Model& model = sessions[0]->model();
  std::vector<Session*> each;
  std::vector<Part> parts;
  size_t wanted = 0;
  for (size_t i = 0; i < sessions.size(); ++i) {
    require(&sessions[i]->model() == &model, "the sessions of a pass are of one model");
    require(std::find(each.begin(), each.end(), sessions[i].get()) == each.end(),
            "a session is once in a pass");
    each.push_back(sessions[i].get());
    parts.push_back(part_of(asked[i], model.vocab));
    wanted += parts.back().wanted;
  }
  auto out = new_array<float>({wanted, size_t(model.vocab)});
  nb::gil_scoped_release release;
  Session::score(each, std::move(parts), out.data());
  return out;
}

// Of each row of logits: the likeliest token, and its probability.
auto top(In<float, 2> logits) {
  const int n = int(logits.shape(0)), vocab = int(logits.shape(1));
  require(vocab > 0, "a row has logits");
  const Kernels& kernels = kernels_named("");
  auto tokens = new_array<int32_t>({size_t(n)});
  auto chances = new_array<double>({size_t(n)});
  for (int i = 0; i < n; ++i) {
    const float* row = logits.data() + int64_t(i) * vocab;
    const int token = kernels.best(row, vocab);
    tokens.data()[i] = token;
    chances.data()[i] = 1 / kernels.mass(row, vocab, row[token]);
  }
  return nb::make_tuple(tokens, chances);
}

// Sets the logits of tokens whose bit is 0, or that have none, to -inf; the likeliest of the rest.
int narrow(nb::ndarray<float, nb::numpy, nb::ndim<1>, nb::c_contig> row, In<uint8_t, 1> bits) {
  const int vocab = int(row.shape(0)), known = std::min(vocab, int(bits.shape(0)) * 8);
  require(vocab > 0, "a row has logits");
  const Kernels& kernels = kernels_named("");
  kernels.allow(row.data(), known, bits.data());
  std::fill(row.data() + known, row.data() + vocab, -std::numeric_limits<float>::infinity());
  return kernels.best(row.data(), vocab);
}

// int8 operations a second of int4 products, from the first cache, on all threads at once.
double peak_rate(Pool& pool, const std::string& name) {
  const Kernels& kernels = kernels_named(name);
  std::atomic<int64_t> done{0};
  const auto start = std::chrono::steady_clock::now();
  parallel(pool, pool.threads(), [&](int) { done += int64_t(kernels.peak(100000)); });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return double(done) / seconds.count();
}

// Bytes a second of reading `data` once, on all threads at once.
double read_rate(Pool& pool, In<uint8_t, 1> data) {
  const int64_t count = data.size() / 8, each = count / pool.threads();
  const uint64_t* words = reinterpret_cast<const uint64_t*>(data.data());
  std::atomic<uint64_t> total{0};
  const auto start = std::chrono::steady_clock::now();
  parallel(pool, pool.threads(), [&](int thread) {
    uint64_t sums[32] = {};
    for (int64_t i = 0; i + 32 <= each; i += 32)
      for (int j = 0; j < 32; ++j) sums[j] ^= words[thread * each + i + j];
    for (const uint64_t s : sums) total += s;
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return double(count) * 8 / seconds.count();
}

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);
  nb::enum_<Format>(m, "Format")
      .value("F32", Format::kF32)
      .value("BF16", Format::kBF16)
      .value("Q8", Format::kQ8)
      .value("Q4", Format::kQ4)
      .value("Q6", Format::kQ6);
  nb::class_<Pool>(m, "Pool")
      .def("__init__",
           [](Pool* self, int threads) {
             require(threads >= 1 && threads <= 256, "threads must be 1 to 256");
             new (self) Pool(threads);
           })
      .def_prop_ro("threads", &Pool::threads);
  nb::class_<Model>(m, "Model");
  m.def("build", &build);
  nb::class_<Session>(m, "Session")
      .def("__init__", [](Session* self,
                          std::shared_ptr<Model> model) { new (self) Session(std::move(model)); })
      .def_prop_ro("length", &Session::length)
      .def_prop_ro("last_rows", &Session::last_rows)
      .def("keep",
           [](Session& s, int n) {
             require(n >= 0 && n <= s.last_rows(), "keep: more rows than the last pass had");
             s.keep(n);
           })
      .def("truncate",
           [](Session& s, int n) {
             require(n >= 0 && n <= s.length(), "truncate: longer than the session");
             s.truncate(n);
           })
      .def("fork", &Session::fork)
      .def("save",
           [](Session& s) {
             s.truncate(s.length());  // what lies after the cached rows is no part of them
             auto out = new_array<uint8_t>({size_t(s.saved_bytes())});
             s.save(out.data());
             return out;
           })
      .def("restore", [](Session& s, In<uint8_t, 1> bytes, int length) {
        s.restore(bytes.data(), int64_t(bytes.size()), length);
      });
  m.def("score", &score);
  m.def("top", &top);
  m.def("narrow", &narrow);
  m.def("pack", &pack);
  m.def("unpack", &unpack);
  m.def("product", &product);
  m.def("peak_rate", &peak_rate, nb::call_guard<nb::gil_scoped_release>());
  m.def("read_rate", &read_rate);
  m.def("kernels", [] {
    std::vector<std::string> names;
    for (auto name = runnable_kernels(); *name; ++name) names.emplace_back(*name);
    return names;
  });
}
