// Plain values shared by every file of the core. Nothing here depends on an instruction
// set: kernel files are compiled with different flags, so what they share is forced
// inline, or the linker could keep a copy that the processor cannot run.
#pragma once
#include <cstdint>
#include <cstring>

#if defined(_MSC_VER)
#define MZ_INLINE __forceinline
#else
#define MZ_INLINE inline __attribute__((always_inline))
#endif

namespace mezzotint {

// x rounded to bfloat16, to nearest even.
MZ_INLINE uint16_t to_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

constexpr int kTile = 32;   // output columns packed together
constexpr int kGroup = 32;  // inputs that share a scale, in weights and in activations
constexpr int kPage = 64;   // tokens in a KV page

enum class Format : int { kF32 = 0, kBF16 = 1, kQ8 = 2, kQ4 = 3, kQ6 = 4 };

// A linear layer's weight (n outputs, k inputs), packed in tiles of kTile outputs.
// Quantised: per tile, per group of kGroup inputs: kTile fp16 scales d, (kQ4) kTile fp16
// minima m, then the codes, four inputs of one output side by side:
//   kQ8: byte q + 128, value d·q;   kQ4: nibble q, value d·q + m; low nibbles are outputs
//   0..15 of the tile, high nibbles outputs 16..31;   kQ6: q + 32 in six bits, value d·q; per
//   sixteen inputs and sixteen outputs three vectors of 64 bytes, for inputs 0..3, 4..7 and
//   8..11, and in their two top bits, lowest first, inputs 12..15.
// Float: per tile, per input: kTile values.
struct Matrix {
  const uint8_t* data = nullptr;
  Format format = Format::kF32;
  int n = 0;
  int k = 0;  // a multiple of kGroup

  MZ_INLINE int tiles() const { return (n + kTile - 1) / kTile; }
  MZ_INLINE constexpr int64_t group_bytes() const {
    switch (format) {
      case Format::kF32:
        return kGroup * kTile * 4;
      case Format::kBF16:
        return kGroup * kTile * 2;
      case Format::kQ8:
        return kTile * (2 + kGroup);
      case Format::kQ6:
        return kTile * (2 + kGroup * 3 / 4);
      default:
        return kTile * (4 + kGroup / 2);
    }
  }
  MZ_INLINE int64_t tile_bytes() const { return k / kGroup * group_bytes(); }
  MZ_INLINE int64_t bytes() const { return tiles() * tile_bytes(); }
  MZ_INLINE bool quantized() const { return format != Format::kF32 && format != Format::kBF16; }
};

// M rows of activations: as floats, and as int8 codes with value scale · code, one scale
// for each group of kGroup. `offset` is scale · Σ codes, `start` is -128 · Σ codes: where a
// sum begins whose weights are kQ8's bytes q + 128.
// Row r's group g is number g · group_step + r: threads share out groups, so a group's rows
// lie together, and no two threads write to one cache line.
struct Rows {
  float* f32;     // (m, k)
  int8_t* codes;  // kGroup a group
  float* scale;   // one a group, as the next two
  float* offset;
  int32_t* start;
  int k;
  int group_step;

  MZ_INLINE int64_t at(int row, int group) const { return int64_t(group) * group_step + row; }
  MZ_INLINE Rows from(int row) const {
    return {f32 + int64_t(row) * k,
            codes + int64_t(row) * kGroup,
            scale + row,
            offset + row,
            start + row,
            k,
            group_step};
  }
};

// The keys and values of one layer and KV head, as the attention kernel walks them.
// In a page, with t the token and d the dimension: keys lie in tiles of 16 tokens, values
// token by token, so that either is a straight stream of vectors. bf16 pairs two d's of a
// key, and two t's of a value, in one 32-bit lane.
struct KvView {
  uint8_t* const* pages;
  int64_t k_offset;  // bytes from a page's start
  int64_t v_offset;
  int head_dim;  // a multiple of 16
  int slots;     // cached rows and the pass's own
  bool bf16;     // else fp32
};

}  // namespace mezzotint
