#include "simd_avx512.h"
// (the Simd must come first)
#include "kernels_impl.h"

namespace mezzotint {
#if defined(__AVX512BF16__)
extern const Kernels kAvx512Bf16 = table("avx512-bf16");
#else
extern const Kernels kAvx512 = table("avx512");
#endif
}  // namespace mezzotint
