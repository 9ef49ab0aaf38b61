// ConfigAnswers: caches answers of `ssh -G`: one query for all hosts that match the same lines of
// the user's configuration. Reads the configuration files on first use. Main thread only.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_CONFIG_ANSWERS_H_
#define HVD_LAUNCHER_CHANNELS_SSH_CONFIG_ANSWERS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "discovery/ssh_config_choices.h"
#include "launcher/channels/ssh_command.h"
#include "runtime/base/status.h"

namespace hvd {

class ConfigAnswers {
 public:
  using OnAnswer = std::function<void(Result<std::string>)>;
  // Runs `ssh -G`; calls back later.
  using Ask = std::function<void(const SshHost& host, OnAnswer done)>;

  // Calls back later, or at once if the answer is known. Must outlive its queries.
  void Get(const SshHost& host, const Ask& ask, OnAnswer done);

 private:
  struct Waiting {
    SshHost host;
    OnAnswer done;
  };
  struct Shared {
    std::string of;  // the host queried
    bool known = false;
    Result<std::string> answer = Internal("not asked yet");
    std::vector<Waiting> waiting;
  };
  const SshConfigChoices& ChoicesIn(const std::string& config_file);
  void Know(const std::string& key, Result<std::string> answer, const Ask& ask);
  static void Share(const Shared& shared, const SshHost& host, const Ask& ask, OnAnswer done);

  std::map<std::string, SshConfigChoices> choices_;  // by config file
  std::map<std::string, Shared> shared_;             // by everything that the answer depends on
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_CONFIG_ANSWERS_H_
