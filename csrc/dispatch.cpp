// Which kernel tables this build holds, and which of them this processor runs.
#include <cstring>

#include "kernels.h"

#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace mezzotint {

extern const Kernels kPortable;
#if defined(MZ_X86)
extern const Kernels kAvx512Bf16, kAvx512, kAvxVnni, kAvx2;
#elif defined(MZ_ARM)
extern const Kernels kI8mm, kDotprod;
#endif

namespace {

#if defined(MZ_X86)
bool has(const char* feature) {
  __builtin_cpu_init();
  if (!std::strcmp(feature, "avx2"))
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("f16c");
  if (!std::strcmp(feature, "avxvnni")) return has("avx2") && __builtin_cpu_supports("avxvnni");
  if (!std::strcmp(feature, "avx512"))
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vnni");
  return has("avx512") && __builtin_cpu_supports("avx512bf16");
}
#elif defined(MZ_ARM)
bool has(const char* feature) {
#if defined(__APPLE__)
  return !std::strcmp(feature, "dotprod");  // every Apple chip for macOS; i8mm since the M2
#else
  const bool i8mm = !std::strcmp(feature, "i8mm");
  return i8mm ? (getauxval(AT_HWCAP2) >> 13) & 1 : (getauxval(AT_HWCAP) >> 20) & 1;
#endif
}
#endif

struct Found {
  const Kernels* tables[8] = {};
  const char* names[8] = {};
  Found() {
    int n = 0;
    const auto add = [&](const Kernels& table) {
      names[n] = table.name;
      tables[n++] = &table;
    };
#if defined(MZ_X86)
    if (has("avx512-bf16")) add(kAvx512Bf16);
    if (has("avx512")) add(kAvx512);
    if (has("avxvnni")) add(kAvxVnni);
    if (has("avx2")) add(kAvx2);
#elif defined(MZ_ARM)
    if (has("i8mm")) add(kI8mm);
    if (has("dotprod")) add(kDotprod);
#endif
    add(kPortable);
  }
};

const Found& found() {
  static const Found once;
  return once;
}

}  // namespace

const Kernels* find_kernels(const char* name) {
  const Found& f = found();
  if (!*name) return f.tables[0];
  for (int i = 0; f.names[i]; ++i)
    if (!std::strcmp(name, f.names[i])) return f.tables[i];
  return nullptr;
}

const char* const* runnable_kernels() { return found().names; }

}  // namespace mezzotint
