#include "launcher/bundle/install_paths.h"

namespace hvd {

InstallPaths PathsBeside(const std::string& executable) {
  std::string bin = executable.substr(0, executable.rfind('/'));
  std::string prefix = bin.substr(0, bin.rfind('/'));
  const std::string libraries = prefix + "/" HVD_LIBDIR;
  return {libraries + "/libhvd.so", libraries + "/hvdrun/python"};
}

}  // namespace hvd
