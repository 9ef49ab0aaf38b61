#include "launcher/channels/ssh/config_answers.h"

#include <glob.h>
#include <pwd.h>
#include <unistd.h>

#include <utility>

#include "launcher/process/proc_file.h"

namespace hvd {
namespace {

constexpr const char* kSystemFolder = "/etc/ssh/";

// ssh uses the home directory of the user's passwd entry, whatever HOME is.
std::string HomeOfUser() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry == nullptr ? "" : std::string(entry->pw_dir) + "/";
}

// Like ssh: relative names are relative to the file that is read.
SshConfigChoices::Include IncludeFrom(std::string folder) {
  return [folder = std::move(folder)](
             const std::string& pattern) -> std::optional<std::vector<std::string>> {
    if (pattern.find_first_of("%$") != std::string::npos) return std::nullopt;
    std::string path = pattern;
    if (path.starts_with("~/")) {
      path = HomeOfUser() + path.substr(2);
    } else if (!path.starts_with('/')) {
      path = folder + path;
    }
    glob_t found{};
    std::vector<std::string> texts;
    const int outcome = ::glob(path.c_str(), 0, nullptr, &found);
    for (size_t i = 0; outcome == 0 && i < found.gl_pathc; ++i) {
      texts.push_back(ReadSmallFile(found.gl_pathv[i]));
    }
    ::globfree(&found);
    if (outcome != 0 && outcome != GLOB_NOMATCH) return std::nullopt;
    return texts;
  };
}

std::string KeyFor(const SshHost& host, const std::string& choices) {
  std::string key;
  for (const std::string& part :
       {host.config_file, host.user, std::to_string(host.port), host.identity_file, choices}) {
    key += part + '\0';
  }
  return key;
}

}  // namespace

const SshConfigChoices& ConfigAnswers::ChoicesIn(const std::string& config_file) {
  auto [entry, is_new] = choices_.try_emplace(config_file);
  if (!is_new) return entry->second;
  const std::string own_folder = HomeOfUser() + ".ssh/";
  if (!config_file.empty()) {
    entry->second.Read(ReadSmallFile(config_file), IncludeFrom(own_folder));
  } else {
    entry->second.Read(ReadSmallFile(own_folder + "config"), IncludeFrom(own_folder));
    entry->second.Read(ReadSmallFile(std::string(kSystemFolder) + "ssh_config"),
                       IncludeFrom(kSystemFolder));
  }
  return entry->second;
}

void ConfigAnswers::Get(const SshHost& host, const Ask& ask, OnAnswer done) {
  const std::optional<std::string> choices = ChoicesIn(host.config_file).KeyOf(host.name);
  // Answers that may not apply to other hosts are kept for this one: a host may be tried
  // repeatedly.
  const std::string key = KeyFor(host, choices ? *choices : "only " + host.name);
  auto [entry, is_new] = shared_.try_emplace(key);
  Shared& shared = entry->second;
  if (shared.known) return Share(shared, host, ask, std::move(done));
  shared.waiting.push_back({host, std::move(done)});
  if (!is_new) return;
  shared.of = host.name;
  ask(host, [this, key, ask](Result<std::string> answer) { Know(key, std::move(answer), ask); });
}

void ConfigAnswers::Know(const std::string& key, Result<std::string> answer, const Ask& ask) {
  Shared& shared = shared_.at(key);
  shared.known = true;
  shared.answer = std::move(answer);
  for (Waiting& waiting : std::exchange(shared.waiting, {})) {
    Share(shared, waiting.host, ask, std::move(waiting.done));
  }
}

void ConfigAnswers::Share(const Shared& shared, const SshHost& host, const Ask& ask,
                          OnAnswer done) {
  if (!shared.answer.ok() || shared.of == host.name) return done(shared.answer);
  std::optional<std::string> answer = SshAnswerFor(host.name, shared.of, *shared.answer);
  if (!answer) return ask(host, std::move(done));
  done(std::move(*answer));
}

}  // namespace hvd
