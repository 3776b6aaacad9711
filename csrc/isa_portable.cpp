#include "simd_portable.h"
// (the Simd must come first)
#include "kernels_impl.h"

namespace mezzotint {
extern const Kernels kPortable = table("portable");
}
