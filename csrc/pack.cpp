#include "pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace mezzotint {

uint16_t to_half(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const float a = std::fabs(x);
  if (a >= 65520.0f) return static_cast<uint16_t>(sign | 0x7c00);
  if (a < 6.103515625e-05f) {  // subnormal: the rounding of the adder does the work
    const float scaled = a * 16777216.0f;
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyintf(scaled)));
  }
  uint32_t mantissa = bits & 0x7fffffff;
  mantissa += 0xfff + ((mantissa >> 13) & 1);
  return static_cast<uint16_t>(sign | ((mantissa - (112u << 23)) >> 13));
}

float from_half(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000) << 16;
  const uint32_t exponent = (h >> 10) & 31, mantissa = h & 1023;
  float x;
  if (exponent == 0) {
    x = static_cast<float>(mantissa) / 16777216.0f;
    return sign ? -x : x;
  }
  const uint32_t bits =
      sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | (mantissa << 13);
  std::memcpy(&x, &bits, 4);
  return x;
}

namespace {

struct Affine {
  float d, m;
};

float q4_error(const float* x, Affine a, uint8_t* codes) {
  const float inverse = a.d > 0 ? 1.0f / a.d : 0.0f;
  float error = 0;
  for (int i = 0; i < kGroup; ++i) {
    const float q = std::clamp(std::nearbyintf((x[i] - a.m) * inverse), 0.0f, 15.0f);
    codes[i] = static_cast<uint8_t>(q);
    const float e = a.d * q + a.m - x[i];
    error += e * e;
  }
  return error;
}

// The grid of 16 values with the least squared error, of ranges shrunk about their centre.
Affine q4_grid(const float* x, uint8_t* codes) {
  const auto [low, high] = std::minmax_element(x, x + kGroup);
  const float centre = (*low + *high) / 2, half = (*high - *low) / 2;
  Affine best{};
  float least = INFINITY;
  uint8_t trial[kGroup];
  for (const float shrink : {1.0f, 0.95f, 0.9f, 0.85f, 0.8f}) {
    const Affine a{from_half(to_half(2 * half * shrink / 15)),
                   from_half(to_half(centre - half * shrink))};
    const float error = q4_error(x, a, trial);
    if (error < least) {
      least = error;
      best = a;
      std::memcpy(codes, trial, kGroup);
    }
    if (least == 0) break;
  }
  return best;
}

void put_half(uint8_t* p, int i, float x) {
  const uint16_t h = to_half(x);
  std::memcpy(p + 2 * i, &h, 2);
}

float get_half(const uint8_t* p, int i) {
  uint16_t h;
  std::memcpy(&h, p + 2 * i, 2);
  return from_half(h);
}

void pack_q4(const float* x, int column, uint8_t* group) {
  uint8_t codes[kGroup];
  const Affine a = q4_grid(x, codes);
  put_half(group, column, a.d);
  put_half(group + 2 * kTile, column, a.m);
  uint8_t* nibbles = group + 4 * kTile;
  for (int i = 0; i < kGroup; ++i) {
    uint8_t& byte = nibbles[i / 4 * 64 + column % 16 * 4 + i % 4];
    byte = static_cast<uint8_t>(byte | (column < 16 ? codes[i] : codes[i] << 4));
  }
}

void pack_q8(const float* x, int column, uint8_t* group) {
  float largest = 0;
  for (int i = 0; i < kGroup; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float d = from_half(to_half(largest / 127));
  put_half(group, column, d);
  uint8_t* codes = group + 2 * kTile;
  for (int i = 0; i < kGroup; ++i) {
    const float q = d > 0 ? std::clamp(std::nearbyintf(x[i] / d), -127.0f, 127.0f) : 0.0f;
    codes[i / 4 * 128 + column * 4 + i % 4] = static_cast<uint8_t>(static_cast<int>(q) + 128);
  }
}

// Where in a kQ6 group input i of a column lies: its byte, or for the last four of sixteen
// inputs the first of three, 64 bytes apart.
int six_at(int i, int column) {
  const int vectors = 192 * (i / 16 * 2 + column / 16);
  return 2 * kTile + vectors + i % 16 / 4 % 3 * 64 + column % 16 * 4 + i % 4;
}

void pack_q6(const float* x, int column, uint8_t* group) {
  float largest = 0;
  for (int i = 0; i < kGroup; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float d = from_half(to_half(largest / 31));
  put_half(group, column, d);
  for (int i = 0; i < kGroup; ++i) {
    const float q = d > 0 ? std::clamp(std::nearbyintf(x[i] / d), -31.0f, 31.0f) : 0.0f;
    const int code = static_cast<int>(q) + 32;
    uint8_t* at = group + six_at(i, column);
    if (i % 16 < 12)
      *at = static_cast<uint8_t>(*at | code);
    else
      for (int part = 0; part < 3; ++part)
        at[64 * part] = static_cast<uint8_t>(at[64 * part] | (code >> 2 * part & 3) << 6);
  }
}

int get_q6(const uint8_t* group, int i, int column) {
  const uint8_t* at = group + six_at(i, column);
  if (i % 16 < 12) return (*at & 63) - 32;
  return (at[0] >> 6 | at[64] >> 6 << 2 | at[128] >> 6 << 4) - 32;
}

void pack_float(const float* x, int column, Format format, uint8_t* group) {
  for (int i = 0; i < kGroup; ++i) {
    if (format == Format::kF32) {
      std::memcpy(group + 4 * (i * kTile + column), x + i, 4);
    } else {
      const uint16_t h = to_bf16(x[i]);
      std::memcpy(group + 2 * (i * kTile + column), &h, 2);
    }
  }
}

}  // namespace

void pack_tile(const float* const* rows, int k, Format format, uint8_t* out) {
  const Matrix shape{nullptr, format, kTile, k};
  const float zeros[kGroup] = {};
  std::memset(out, 0, shape.tile_bytes());
  for (int column = 0; column < kTile; ++column)
    for (int g = 0; g < k / kGroup; ++g) {
      const float* x = rows[column] ? rows[column] + g * kGroup : zeros;
      uint8_t* group = out + g * shape.group_bytes();
      switch (format) {
        case Format::kQ4:
          pack_q4(x, column, group);
          break;
        case Format::kQ8:
          pack_q8(x, column, group);
          break;
        case Format::kQ6:
          pack_q6(x, column, group);
          break;
        default:
          pack_float(x, column, format, group);
      }
    }
}

void unpack_row(const Matrix& w, int j, float* out) {
  const uint8_t* group = w.data + j / kTile * w.tile_bytes();
  const int column = j % kTile;
  for (int g = 0; g < w.k / kGroup; ++g, group += w.group_bytes(), out += kGroup) {
    for (int i = 0; i < kGroup; ++i) {
      if (w.format == Format::kF32) {
        std::memcpy(out + i, group + 4 * (i * kTile + column), 4);
      } else if (w.format == Format::kBF16) {
        uint16_t h;
        std::memcpy(&h, group + 2 * (i * kTile + column), 2);
        const uint32_t bits = uint32_t(h) << 16;
        std::memcpy(out + i, &bits, 4);
      } else if (w.format == Format::kQ8) {
        const int code = group[2 * kTile + i / 4 * 128 + column * 4 + i % 4] - 128;
        out[i] = get_half(group, column) * static_cast<float>(code);
      } else if (w.format == Format::kQ6) {
        out[i] = get_half(group, column) * static_cast<float>(get_q6(group, i, column));
      } else {
        const uint8_t byte = group[4 * kTile + i / 4 * 64 + column % 16 * 4 + i % 4];
        const int code = column < 16 ? byte & 15 : byte >> 4;
        out[i] = get_half(group, column) * static_cast<float>(code) +
                 get_half(group + 2 * kTile, column);
      }
    }
  }
}

}  // namespace mezzotint
