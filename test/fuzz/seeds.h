// Seeds of a fuzzer, made in code: written into its corpus folder (the first argument that is no
// flag) before it starts.
#ifndef HVD_TEST_FUZZ_SEEDS_H_
#define HVD_TEST_FUZZ_SEEDS_H_

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace hvd {

inline void WriteSeeds(int argc, char** argv, const std::vector<std::string>& seeds) {
  for (int i = 1; i < argc; ++i) {
    std::filesystem::path folder = argv[i];
    if (argv[i][0] == '-' || !std::filesystem::is_directory(folder)) continue;
    for (size_t n = 0; n < seeds.size(); ++n) {
      std::ofstream(folder / ("seed-" + std::to_string(n)), std::ios::binary) << seeds[n];
    }
    return;
  }
}

// A fuzzer stops here when something that must hold does not.
inline void Must(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace hvd

#endif  // HVD_TEST_FUZZ_SEEDS_H_
