// One forward pass: M rows through the layers, as phases that all threads share.
//
// Who computes an item never changes its bits, so neither does the number of threads.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "model.h"
#include "pack.h"

namespace mezzotint {

namespace {

template <class T>
struct Buffer {  // 64-byte aligned, uninitialised
  explicit Buffer(int64_t count)
      : data(static_cast<T*>(
            ::operator new(std::max<int64_t>(count, 1) * sizeof(T), std::align_val_t(64)))) {}
  ~Buffer() { ::operator delete(data, std::align_val_t(64)); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* data;
};

struct RowBuffer {
  RowBuffer(int m, int k)
      : f32(int64_t(m) * k),
        codes(int64_t(m) * k),
        scale(int64_t(m) * k / kGroup),
        offset(int64_t(m) * k / kGroup),
        start(int64_t(m) * k / kGroup),
        k(k) {}
  Rows rows() const { return {f32.data, codes.data, scale.data, offset.data, start.data, k}; }
  Buffer<float> f32;
  Buffer<int8_t> codes;
  Buffer<float> scale, offset;
  Buffer<int32_t> start;
  int k;
};

// One bit a slot for every row, and how many slots the row's last visible one needs.
struct VisibleBits {
  VisibleBits(int m, int cached, const Visibility& v) : words((cached + m + 63) / 64) {
    bits.assign(int64_t(m) * words, 0);
    for (int i = 0; i < m; ++i) {
      uint64_t* row = bits.data() + int64_t(i) * words;
      set(row, 0, std::min(v.hide_first, cached));
      set(row, std::min(std::max(v.hide_last, 0), cached), cached);
      set(row, cached + i, cached + i + 1);
      if (v.kind == Visibility::kCausal) set(row, cached, cached + i + 1);
      if (v.kind == Visibility::kFull) set(row, cached, cached + m);
      if (v.kind == Visibility::kMatrix)
        for (int j = 0; j < m; ++j)
          if (v.matrix[int64_t(i) * m + j]) set(row, cached + j, cached + j + 1);
    }
  }
  static void set(uint64_t* row, int first, int last) {
    for (int s = first; s < last;) {
      if (s % 64 == 0 && last - s >= 64) {
        row[s / 64] = ~uint64_t(0);
        s += 64;
      } else {
        row[s / 64] |= uint64_t(1) << (s % 64);
        ++s;
      }
    }
  }
  const uint64_t* row(int i) const { return bits.data() + int64_t(i) * words; }
  int slots(int i) const {
    int word = words - 1;
    while (row(i)[word] == 0) --word;
    return word * 64 + 64 - std::countl_zero(row(i)[word]);
  }
  int words;
  std::vector<uint64_t> bits;
};

class Forward : public Job {
 public:
  Forward(const Model& model, uint8_t* const* pages, int cached, const int32_t* tokens,
          const int32_t* positions, int m, const Visibility& visible, const int32_t* want,
          int wanted, float* logits)
      : Job(kPhases * (static_cast<int>(model.layers.size()) + 1)),
        model_(model),
        k_(*model.kernels),
        pages_(pages),
        cached_(cached),
        tokens_(tokens),
        m_(m),
        want_(want),
        wanted_(wanted),
        logits_(logits),
        q_width_(model.heads * model.head_dim),
        kv_width_(model.kv_heads * model.head_dim),
        x_(int64_t(m) * model.hidden),
        qkv_(int64_t(m) * (q_width_ + 2 * kv_width_)),
        normed_(std::max(m, wanted), model.hidden),
        attended_(m, q_width_),
        active_(m, model.ffn),
        cosine_(int64_t(m) * model.head_dim / 2),
        sine_(int64_t(m) * model.head_dim / 2),
        visible_(m, cached, visible),
        scratch_each_(attend_scratch(cached + m, model.head_dim)),
        scratch_(scratch_each_ * model.pool->threads()) {
    const int half = model.head_dim / 2;
    for (int i = 0; i < m; ++i)
      for (int d = 0; d < half; ++d) {
        const float angle = static_cast<float>(positions[i]) * model.inverse_frequency[d];
        cosine_.data[i * half + d] = std::cos(angle) * model.rope_factor;
        sine_.data[i * half + d] = std::sin(angle) * model.rope_factor;
      }
  }

  void work(int thread) override {
    int phase = 0;
    rows(
        phase++, m_, [&](int i) { unpack_row(model_.embed, tokens_[i], x(i)); },
        model_.layers[0].qkv);
    for (size_t layer = 0; layer < model_.layers.size(); ++layer)
      block(model_.layers[layer], static_cast<int>(layer), phase, thread);
    rows(phase++, wanted_, [&](int i) { norm(x(want_[i]), model_.norm, i); }, model_.head);
    product(phase++, model_.head, normed_.rows(), wanted_, logits_, model_.vocab, false);
  }

 private:
  static constexpr int kPhases = 8;

  void block(const Layer& layer, int index, int& phase, int thread) {
    rows(phase++, m_, [&](int i) { norm(x(i), layer.attn_norm, i); }, layer.qkv);
    product(phase++, layer.qkv, normed_.rows(), m_, qkv_.data, q_width_ + 2 * kv_width_, false);
    rows(phase++, m_, [&](int i) { rotate_and_store(layer, index, i); }, layer.o);
    const int blocks = (m_ * group() + kQueries - 1) / kQueries;
    rows(
        phase++, model_.kv_heads * blocks,
        [&](int item) { attend(index, item / blocks, item % blocks * kQueries, thread); }, layer.o);
    product(phase++, layer.o, attended_.rows(), m_, x(0), model_.hidden, true);
    rows(phase++, m_, [&](int i) { norm(x(i), layer.ffn_norm, i); }, layer.gate_up);
    tiles(phase++, layer.gate_up.tiles() / 2, [&](int first, int last) {
      k_.gemm_glu(layer.gate_up, normed_.rows(), m_, first, last, active_.rows());
    });
    product(phase++, layer.down, active_.rows(), m_, x(0), model_.hidden, true);
  }

  int group() const { return model_.heads / model_.kv_heads; }
  float* x(int i) const { return x_.data + int64_t(i) * model_.hidden; }

  // ---- sharing work ------------------------------------------------------------------

  template <class Fn>
  void rows(int phase, int count, Fn&& each, const Matrix& next) {
    share(phase, count, 1, [&](int i, int) { each(i); }, next.data);
  }

  // Few rows: long runs of tiles, for the memory's sake. Many rows: a tile is work enough.
  template <class Fn>
  void tiles(int phase, int count, Fn&& range) {
    share(phase, count, m_ > 8 ? 1 : std::max(1, count / (model_.pool->threads() * 6)), range);
  }

  void product(int phase, const Matrix& w, const Rows& rows, int m, float* out, int64_t stride,
               bool accumulate) {
    tiles(phase, w.tiles(),
          [&](int first, int last) { k_.gemm(w, rows, m, first, last, out, stride, accumulate); });
  }

  // ---- one row, one item -------------------------------------------------------------

  void norm(const float* from, const float* weight, int i) {
    const Rows row = normed_.rows().from(i);
    k_.rmsnorm(from, weight, model_.hidden, model_.eps, row.f32);
    k_.quantize(row, 0, model_.hidden / kGroup);
  }

  KvView view(int layer, int head, int slots) const {
    const int64_t at = 2 * (int64_t(layer) * model_.kv_heads + head) * model_.head_bytes();
    return {pages_, at, at + model_.head_bytes(), model_.head_dim, slots, model_.bf16_kv};
  }

  void rotate_and_store(const Layer& layer, int index, int i) {
    float* row = qkv_.data + int64_t(i) * (q_width_ + 2 * kv_width_);
    const int d = model_.head_dim;
    if (layer.qkv_bias)
      for (int j = 0; j < q_width_ + 2 * kv_width_; ++j) row[j] += layer.qkv_bias[j];
    const int half = d / 2;
    const float *cosine = cosine_.data + i * half, *sine = sine_.data + i * half;
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    for (int h = 0; h < model_.heads; ++h) {
      float* q = row + h * d;
      if (layer.q_norm) k_.rmsnorm(q, layer.q_norm, d, model_.eps, q);
      k_.rotate(q, cosine, sine, half);
      for (int j = 0; j < d; ++j) q[j] *= scale;
    }
    for (int h = 0; h < model_.kv_heads; ++h) {
      float* key = row + q_width_ + h * d;
      if (layer.k_norm) k_.rmsnorm(key, layer.k_norm, d, model_.eps, key);
      k_.rotate(key, cosine, sine, half);
      k_.store(view(index, h, cached_ + m_), cached_ + i, key, key + kv_width_);
    }
  }

  // Up to kQueries queries of one KV head: query n is row n / group, head n % group.
  void attend(int layer, int kv_head, int first, int thread) {
    const int d = model_.head_dim, count = std::min(kQueries, m_ * group() - first);
    const float* queries[kQueries];
    const uint64_t* visible[kQueries];
    float* out[kQueries];
    int slots = 0;
    for (int n = 0; n < count; ++n) {
      const int i = (first + n) / group(), head = kv_head * group() + (first + n) % group();
      queries[n] = qkv_.data + int64_t(i) * (q_width_ + 2 * kv_width_) + head * d;
      visible[n] = visible_.row(i);
      out[n] = attended_.f32.data + int64_t(i) * q_width_ + head * d;
      slots = std::max(slots, visible_.slots(i));
    }
    k_.attend(view(layer, kv_head, slots), queries, count, visible,
              scratch_.data + thread * scratch_each_, out);
    for (int n = 0; n < count; ++n) {
      const int i = (first + n) / group(), head = kv_head * group() + (first + n) % group();
      k_.quantize(attended_.rows().from(i), head * d / kGroup, (head + 1) * d / kGroup);
    }
  }

  const Model& model_;
  const Kernels& k_;
  uint8_t* const* pages_;
  const int cached_;
  const int32_t* tokens_;
  const int m_;
  const int32_t* want_;
  const int wanted_;
  float* logits_;
  const int q_width_, kv_width_;
  Buffer<float> x_, qkv_;
  RowBuffer normed_, attended_, active_;
  Buffer<float> cosine_, sine_;
  VisibleBits visible_;
  const int64_t scratch_each_;
  Buffer<float> scratch_;
};

}  // namespace

void forward(const Model& model, uint8_t* const* pages, int cached, const int32_t* tokens,
             const int32_t* positions, int m, const Visibility& visible, const int32_t* want,
             int wanted, float* logits) {
  model.pool->run(std::make_shared<Forward>(model, pages, cached, tokens, positions, m, visible,
                                            want, wanted, logits));
}

}  // namespace mezzotint
