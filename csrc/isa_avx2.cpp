#include "simd_avx2.h"
// (the Simd must come first)
#include "kernels_impl.h"

namespace mezzotint {
#if defined(__AVXVNNI__)
extern const Kernels kAvxVnni = table("avxvnni");
#else
extern const Kernels kAvx2 = table("avx2");
#endif
}  // namespace mezzotint
