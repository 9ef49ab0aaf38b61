// Facts about this process that verbs need, and functions to print.
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "cmd/hvdrun/verbs.h"
#include "configs/message_text.h"
#include "configs/project_python.h"
#include "launcher/output/output.h"
#include "runtime/base/colours.h"
#include "runtime/base/env.h"

namespace hvd {
namespace {

constexpr size_t kMaxSentence = 500;  // of a usage error, whatever it quotes

}  // namespace

std::string OwnPath() {
  char path[PATH_MAX] = {};
  return ::readlink("/proc/self/exe", path, sizeof path - 1) > 0 ? path : "/usr/bin/hvdrun";
}

std::string WorkingDirectory() {
  char path[PATH_MAX];
  return ::getcwd(path, sizeof path) != nullptr ? path : "/";
}

std::vector<std::string> Environment() {
  std::vector<std::string> entries;
  for (const auto& [name, value] : AllEnv()) entries.push_back(name + "=" + value);
  return entries;
}

void UseProjectsPython() {
  const std::string path = GetEnv("PATH").value_or("");
  const std::string environment = ProjectBehindTool(
      {GetEnv("UV").has_value(), std::filesystem::path(OwnPath()).parent_path(), path,
       GetEnv("VIRTUAL_ENV").value_or(""), WorkingDirectory(), [](const std::string& file) {
         std::error_code ignored;
         return std::filesystem::is_regular_file(file, ignored);
       }});
  if (environment.empty()) return;
  (void)::setenv("PATH", (environment + "/bin:" + path).c_str(), 1);
  (void)::setenv("VIRTUAL_ENV", environment.c_str(), 1);
  PrintNotes({"python is that of " + Printable(environment, kMaxShownPath) +
              "; uv runs hvdrun in another environment"});
}

int UsageError(const Status& status) {
  WriteAll(STDERR_FILENO,
           RedOnStderr("hvdrun:") + " " + Printable(status.message(), kMaxSentence) + "\n");
  return kUsageError;
}

int PrintText(const std::string& text) {
  if (WriteAll(STDOUT_FILENO, text)) return 0;
  WriteAll(STDERR_FILENO,
           std::string("hvdrun: stdout cannot be written: ") + std::strerror(errno) + "\n");
  return 1;
}

void VerbLine(const char* verb, const std::string& sentence) {
  WriteAll(STDERR_FILENO, std::string("hvdrun ") + verb + ": " + sentence + "\n");
}

int FailVerb(const char* verb, const std::string& sentence, int code) {
  VerbLine(verb, sentence);
  return code;
}

}  // namespace hvd
