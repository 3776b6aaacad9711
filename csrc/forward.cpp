// One forward pass: M rows through the layers, as phases that all threads share.
//
// The rows are those of one or more sessions: one matrix for the products, and each session's
// own in attention. Who computes an item never changes its bits, nor what else is in the pass;
// so neither does the number of threads or of sessions.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>

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

// Activations of m rows; each group's rows begin on a cache line.
struct RowBuffer {
  RowBuffer(int m, int k)
      : group_step((m + 15) / 16 * 16),
        k(k),
        f32(int64_t(m) * k),
        codes(int64_t(k) * group_step),
        scale(int64_t(k) / kGroup * group_step),
        offset(int64_t(k) / kGroup * group_step),
        start(int64_t(k) / kGroup * group_step) {}
  Rows rows() const {
    return {f32.data, codes.data, scale.data, offset.data, start.data, k, group_step};
  }
  int group_step, k;
  Buffer<float> f32;
  Buffer<int8_t> codes;
  Buffer<float> scale, offset;
  Buffer<int32_t> start;
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

static_assert(kTile == kGroup, "an output tile is the next product's group");

class Forward : public Job {
 public:
  Forward(const Model& model, const std::vector<Part>& parts, int m, int wanted, float* logits)
      : Job(kPhases * (static_cast<int>(model.layers.size()) + 1), model.pool->threads()),
        model_(model),
        k_(*model.kernels),
        parts_(parts),
        m_(m),
        logits_(logits),
        q_width_(model.heads * model.head_dim),
        kv_width_(model.kv_heads * model.head_dim),
        query_scale_(1.0f / std::sqrt(static_cast<float>(model.head_dim))),
        x_(int64_t(m) * model.hidden),
        qkv_(int64_t(m) * (q_width_ + 2 * kv_width_)),
        normed_(std::max(m, wanted), model.hidden),
        attended_(m, q_width_),
        active_(m, model.ffn),
        squares_(int64_t(normed_.group_step) * (model.hidden / kGroup)),
        inverse_(int64_t(m) * model.pool->threads()),
        cosine_(int64_t(m) * model.head_dim / 2),
        sine_(int64_t(m) * model.head_dim / 2) {
    rows_.reserve(m);
    want_.reserve(wanted);
    for (const Part& part : parts_) add(part);
    scratch_.emplace(scratch_each_ * model.pool->threads());
  }

  void work(int thread) override {
    Turn turn{thread, 0};
    each(turn, m_, [&](int i) { embed(i); }, model_.layers[0].qkv);
    for (size_t i = 0; i < model_.layers.size(); ++i)
      layer(model_.layers[i], static_cast<int>(i), turn);
    const int wanted = static_cast<int>(want_.size());
    norm(turn, model_.norm, want_.data(), wanted, model_.head);
    product(turn, model_.head, normed_.rows(), wanted, logits_, model_.vocab);
  }

 private:
  static constexpr int kPhases = 7;
  static constexpr int kItemRows = 128;  // rows of a q/k/v item, of long passes

  struct Turn {
    const int thread;
    int phase;
  };

  struct Row {
    int part, slot;
  };

  // Queries [first, first + kQueries) of a part, whose rows begin at row `start`.
  struct Queries {
    int part, start, first;
  };

  void add(const Part& part) {
    const int number = static_cast<int>(visible_.size()), start = static_cast<int>(rows_.size());
    const int half = model_.head_dim / 2;
    for (int i = 0; i < part.m; ++i) {
      for (int d = 0; d < half; ++d) {
        const float angle = static_cast<float>(part.positions[i]) * model_.inverse_frequency[d];
        cosine_.data[(start + i) * half + d] = std::cos(angle) * model_.rope_factor;
        sine_.data[(start + i) * half + d] = std::sin(angle) * model_.rope_factor;
      }
      rows_.push_back({number, part.cached + i});
    }
    for (int n = 0; n < part.wanted; ++n) want_.push_back(start + part.want[n]);
    for (int q = 0; q < part.m * group(); q += kQueries) queries_.push_back({number, start, q});
    visible_.emplace_back(part.m, part.cached, part.visible);
    scratch_each_ = std::max(scratch_each_, attend_scratch(part.cached + part.m, model_.head_dim));
  }

  // The residual x is summed by columns, and normalised by columns: a thread keeps its part
  // of x to itself, and only int8 codes and sums of squares go from core to core.
  void layer(const Layer& layer, int index, Turn& turn) {
    norm(turn, layer.attn_norm, nullptr, m_, layer.qkv);
    const int heads = model_.heads + 2 * model_.kv_heads, blocks = (m_ - 1) / kItemRows + 1;
    each(
        turn, heads * blocks,
        [&](int item) { project(layer, index, item / blocks, item % blocks); }, layer.o);
    const int queries = static_cast<int>(queries_.size());
    each(
        turn, model_.kv_heads * queries,
        [&](int item) { attend(index, item / queries, queries_[item % queries], turn.thread); },
        layer.o);
    residual(turn, layer.o, attended_.rows());
    norm(turn, layer.ffn_norm, nullptr, m_, layer.gate_up);
    tiles(turn, layer.gate_up.tiles() / 2, [&](int first, int last) {
      k_.gemm_glu(layer.gate_up, normed_.rows(), m_, first, last, active_.rows());
    });
    residual(turn, layer.down, active_.rows());
  }

  int group() const { return model_.heads / model_.kv_heads; }
  int row_width() const { return q_width_ + 2 * kv_width_; }
  float* x(int i) const { return x_.data + int64_t(i) * model_.hidden; }
  float& square(int i, int tile) const {
    return squares_.data[int64_t(tile) * normed_.group_step + i];
  }

  // ---- phases ------------------------------------------------------------------------

  template <class Fn>
  void each(Turn& turn, int count, Fn&& one, const Matrix& next) {
    share(turn.phase++, turn.thread, count, 1, [&](int i, int) { one(i); }, next.data);
  }

  // Few rows: long runs of tiles, for the memory's sake. Many rows: a tile is work enough.
  template <class Fn>
  void tiles(Turn& turn, int count, Fn&& range) {
    const int chunk = m_ > 24 ? 1 : std::max(1, count / (model_.pool->threads() * 6));
    share(turn.phase++, turn.thread, count, chunk, range);
  }

  void product(Turn& turn, const Matrix& w, const Rows& rows, int m, float* out, int64_t stride) {
    tiles(turn, w.tiles(),
          [&](int first, int last) { k_.gemm(w, rows, m, first, last, out, stride, false); });
  }

  // x += rows · w, and the sums of squares of x that the next norm asks for.
  void residual(Turn& turn, const Matrix& w, const Rows& rows) {
    tiles(turn, w.tiles(), [&](int first, int last) {
      k_.gemm(w, rows, m_, first, last, x(0), model_.hidden, true);
      for (int tile = first; tile < last; ++tile)
        for (int i = 0; i < m_; ++i) square(i, tile) = k_.squares(x(i) + tile * kGroup);
    });
  }

  // normed = x / rms(x) · weight for the rows `which` (all, if it is nullptr), by groups.
  // Every thread sums the squares for itself, in the order of the tiles. One that comes late
  // may read sums of a later phase: then it finds no group left to use them on.
  void norm(Turn& turn, const float* weight, const int32_t* which, int count, const Matrix& next) {
    const int tiles = model_.hidden / kGroup;
    float* inverse = inverse_.data + int64_t(turn.thread) * m_;
    for (int i = 0; i < m_; ++i) {
      float sum = 0;
      for (int tile = 0; tile < tiles; ++tile) sum += square(i, tile);
      inverse[i] = 1.0f / std::sqrt(sum / static_cast<float>(model_.hidden) + model_.eps);
    }
    each(
        turn, tiles,
        [&](int g) {
          for (int n = 0; n < count; ++n) {
            const int i = which ? which[n] : n;
            k_.normalize(normed_.rows().from(n), g, x(i) + g * kGroup, weight + g * kGroup,
                         inverse[i]);
          }
        },
        next);
  }

  // ---- items -------------------------------------------------------------------------

  void embed(int i) {
    const Part& part = parts_[rows_[i].part];
    unpack_row(model_.embed, part.tokens[rows_[i].slot - part.cached], x(i));
    for (int tile = 0; tile < model_.hidden / kGroup; ++tile)
      square(i, tile) = k_.squares(x(i) + tile * kGroup);
  }

  KvView view(int part, int layer, int head, int slots) const {
    const int64_t at = 2 * (int64_t(layer) * model_.kv_heads + head) * model_.head_bytes();
    return {parts_[part].pages, at,    at + model_.head_bytes(),
            model_.head_dim,    slots, model_.bf16_kv};
  }

  // One head's columns of q, k or v, for a block of rows: bias, norm, rotation; keys and
  // values go to their page.
  void project(const Layer& layer, int index, int head, int block) {
    const int d = model_.head_dim, first = block * kItemRows, column = head * d;
    const int last = std::min(first + kItemRows, m_);
    k_.gemm(layer.qkv, normed_.rows().from(first), last - first, column / kTile,
            (column + d) / kTile, qkv_.data + int64_t(first) * row_width(), row_width(), false);
    const int key = head - model_.heads, value = key - model_.kv_heads;
    const float* weight = key < 0 ? layer.q_norm : layer.k_norm;
    for (int i = first; i < last; ++i) {
      float* row = qkv_.data + int64_t(i) * row_width() + column;
      if (layer.qkv_bias)
        for (int j = 0; j < d; ++j) row[j] += layer.qkv_bias[column + j];
      if (value < 0) {
        if (weight) k_.rmsnorm(row, weight, d, model_.eps, row);
        k_.rotate(row, cosine_.data + int64_t(i) * d / 2, sine_.data + int64_t(i) * d / 2, d / 2);
      }
      const auto [part, slot] = rows_[i];
      if (value >= 0)
        k_.store_value(view(part, index, value, slot + 1), slot, row);
      else if (key >= 0)
        k_.store_key(view(part, index, key, slot + 1), slot, row);
      else
        for (int j = 0; j < d; ++j) row[j] *= query_scale_;
    }
  }

  // Up to kQueries queries of one KV head: query n of a part is its row n / group, head
  // n % group.
  void attend(int layer, int kv_head, const Queries& which, int thread) {
    const int d = model_.head_dim;
    const int count = std::min(kQueries, parts_[which.part].m * group() - which.first);
    const VisibleBits& bits = visible_[which.part];
    const float* queries[kQueries];
    const uint64_t* visible[kQueries];
    float* out[kQueries];
    int slots = 0;
    for (int n = 0; n < count; ++n) {
      const int query = which.first + n, own = query / group(), i = which.start + own;
      const int head = kv_head * group() + query % group();
      queries[n] = qkv_.data + int64_t(i) * row_width() + head * d;
      visible[n] = bits.row(own);
      out[n] = attended_.f32.data + int64_t(i) * q_width_ + head * d;
      slots = std::max(slots, bits.slots(own));
    }
    k_.attend(view(which.part, layer, kv_head, slots), queries, count, visible,
              scratch_->data + thread * scratch_each_, out);
    for (int n = 0; n < count; ++n) {
      const int query = which.first + n, i = which.start + query / group();
      const int head = kv_head * group() + query % group();
      k_.quantize(attended_.rows().from(i), head * d / kGroup, (head + 1) * d / kGroup);
    }
  }

  const Model& model_;
  const Kernels& k_;
  const std::vector<Part> parts_;
  const int m_;
  float* logits_;
  const int q_width_, kv_width_;
  const float query_scale_;
  Buffer<float> x_, qkv_;
  RowBuffer normed_, attended_, active_;
  Buffer<float> squares_;  // (tiles, group_step of normed_), of x
  Buffer<float> inverse_;  // (threads, m)
  Buffer<float> cosine_, sine_;
  std::vector<Row> rows_;
  std::vector<int32_t> want_;  // rows
  std::vector<Queries> queries_;
  std::vector<VisibleBits> visible_;  // of each part
  int64_t scratch_each_ = 0;
  std::optional<Buffer<float>> scratch_;
};

}  // namespace

void forward(const Model& model, const std::vector<Part>& parts, float* logits) {
  int m = 0, wanted = 0;
  for (const Part& part : parts) {
    m += part.m;
    wanted += part.wanted;
  }
  model.pool->run(std::make_shared<Forward>(model, parts, m, wanted, logits));
}

}  // namespace mezzotint
