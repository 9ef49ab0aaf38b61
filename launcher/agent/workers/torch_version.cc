#include "launcher/agent/workers/torch_version.h"

#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "launcher/process/proc_file.h"
#include "launcher/process/spawn.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

bool IsPython(const fs::path& program) { return program.filename().string().starts_with("python"); }

// The interpreter named by the first line of a script; empty: none.
std::string InterpreterOf(const fs::path& script, const std::string& path) {
  std::error_code error;
  constexpr uint64_t kMostBytes = 1024 * 1024;  // scripts are small; programs may be large
  const uint64_t size = fs::file_size(script, error);
  if (error || size > kMostBytes) return "";
  const std::string text = ReadSmallFile(script.string());
  std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  if (!line.starts_with("#!")) return "";
  line.remove_prefix(2);
  const size_t begin = line.find_first_not_of(' ');
  if (begin == line.npos) return "";
  line.remove_prefix(begin);
  const size_t blank = line.find(' ');
  const std::string program(line.substr(0, blank));
  if (fs::path(program).filename() != "env" || blank == line.npos) return program;
  line.remove_prefix(blank + 1);
  return FindProgram(std::string(line.substr(0, line.find(' '))), path, "/").path;
}

void AddIn(const fs::path& library, std::set<TorchVersion>& found) {
  std::error_code error;
  for (fs::directory_iterator entry(library, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const fs::path file = entry->path() / packages / "torch" / "version.py";
      if (auto version = ParseTorchVersion(ReadSmallFile(file.string()))) found.insert(*version);
    }
  }
}

// Of the interpreter in <prefix>/bin.
std::set<TorchVersion> InPrefix(const fs::path& prefix) {
  std::set<TorchVersion> found;
  for (const char* library : {"lib", "lib64", "local/lib"}) AddIn(prefix / library, found);
  return found;
}

}  // namespace

std::optional<TorchVersion> FindTorch(const std::vector<std::string>& argv, const std::string& path,
                                      const std::string& directory) {
  fs::path program = FindProgram(argv.at(0), path, directory).path;
  if (!program.empty() && !IsPython(program)) program = InterpreterOf(program, path);
  if (program.empty() || !IsPython(program)) return std::nullopt;
  std::set<TorchVersion> found = InPrefix(program.parent_path().parent_path());
  std::error_code error;
  const fs::path real = fs::canonical(program, error);
  if (found.empty() && !error) found = InPrefix(real.parent_path().parent_path());
  return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
}

}  // namespace hvd
