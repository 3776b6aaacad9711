// A dense decoder's packed weights, and the KV caches of sequences over them.
#pragma once
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

#include "kernels.h"
#include "pool.h"

namespace mezzotint {

struct Layer {
  Matrix qkv, o, gate_up, down;
  const float *attn_norm, *ffn_norm;
  const float *qkv_bias, *q_norm, *k_norm;  // nullptr where the model has none
};

// Pointers into one packed buffer, which the owner keeps alive.
struct Model {
  int hidden, heads, kv_heads, head_dim, ffn, vocab;
  float eps;
  bool bf16_kv;
  std::vector<float> inverse_frequency;  // (head_dim / 2)
  float rope_factor;
  std::vector<Layer> layers;
  Matrix embed, head;
  const float* norm;
  const Kernels* kernels;
  std::shared_ptr<Pool> pool;

  int64_t head_bytes() const { return int64_t(kPage) * head_dim * (bf16_kv ? 2 : 4); }
  int64_t page_bytes() const { return int64_t(layers.size()) * kv_heads * 2 * head_bytes(); }
};

// kPage tokens' keys and values for every layer and head, zeroed, so that what was never
// written is finite.
class Page {
 public:
  explicit Page(int64_t bytes);
  ~Page() { std::free(data_); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  uint8_t* data() const { return data_; }

 private:
  uint8_t* data_;
};

// Which rows of a pass see which. Every row sees itself and every cached row outside
// [hide_first, hide_last).
struct Visibility {
  enum Kind { kCausal, kFull, kMatrix } kind = kCausal;
  const bool* matrix = nullptr;  // (M, M), row i sees row j
  int hide_first = 0, hide_last = 0;
};

// What one session brings to a pass: m rows, of which logits are wanted of some.
struct Part {
  const int32_t *tokens, *positions;  // (m)
  int m;
  Visibility visible;
  const int32_t* want;  // (wanted), rows of this part
  int wanted;
  uint8_t* const* pages = nullptr;  // of its cache, with room for the rows
  int cached = 0;
};

class Session {
 public:
  explicit Session(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  int length() const { return length_; }
  int last_rows() const { return last_rows_; }
  const Model& model() const { return *model_; }

  // One pass for different sessions of one model: logits (all wanted, vocab), part after part.
  // A part's keys and values are left after its cached ones, where keep() can adopt them.
  static void score(const std::vector<Session*>& sessions, std::vector<Part> parts, float* logits);
  void keep(int count);
  void truncate(int length);
  std::shared_ptr<Session> fork() const { return std::make_shared<Session>(*this); }

  // The cached rows as bytes, and a session that holds them again. Only for the same model.
  int64_t saved_bytes() const { return int64_t(pages_.size()) * model_->page_bytes(); }
  void save(uint8_t* out) const;
  void restore(const uint8_t* bytes, int64_t size, int length);

 private:
  void reserve(int slots);

  std::shared_ptr<const Model> model_;
  std::vector<std::shared_ptr<Page>> pages_;
  int length_ = 0;
  int last_rows_ = 0;
};

// One forward pass over the rows of all parts; see forward.cpp.
void forward(const Model& model, const std::vector<Part>& parts, float* logits);

}  // namespace mezzotint
