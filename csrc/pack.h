// Float weights to packed matrices and back. Portable code: packing runs once a model.
#pragma once
#include "common.h"

namespace mezzotint {

// Packs outputs of `tile` of w (n rows of k floats; row j starts at rows[j], or is nullptr
// for padding) into `out` (tile_bytes). kQ4: per group, d and m by the least squared error
// among a few shrunken ranges. kQ8: d = largest / 127; kQ6: / 31.
void pack_tile(const float* const* rows, int k, Format format, uint8_t* out);

// Row j of a packed matrix as k floats (an embedding).
void unpack_row(const Matrix& w, int j, float* out);

uint16_t to_half(float x);
float from_half(uint16_t x);

}  // namespace mezzotint
