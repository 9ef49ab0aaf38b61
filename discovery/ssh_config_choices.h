// Groups hosts that have the same ssh configuration, so that `ssh -G`, which takes milliseconds,
// runs once per group instead of once per host. Hosts that cannot be grouped with certainty are
// left to ssh. Pure.
#ifndef HVD_DISCOVERY_SSH_CONFIG_CHOICES_H_
#define HVD_DISCOVERY_SSH_CONFIG_CHOICES_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

class SshConfigChoices {
 public:
  // The texts of the files that an argument of `Include` matches, in ssh's order; nothing: unknown.
  using Include =
      std::function<std::optional<std::vector<std::string>>(const std::string& pattern)>;

  // Reads the next of ssh's configuration files.
  void Read(std::string_view text, const Include& include) { Read(text, include, 0); }

  // Hosts with equal keys have equal `ssh -G` output, except for `host` and `hostname`. Nothing:
  // unknown, ask ssh.
  std::optional<std::string> KeyOf(const std::string& host) const;

 private:
  struct Block {
    std::vector<std::string> patterns;
    bool names_host = false;
  };
  void Read(std::string_view text, const Include& include, int depth);
  void ReadIncludes(const std::vector<std::string>& words, const Include& include, int depth);

  std::vector<Block> blocks_;
  bool in_block_ = false;  // or before the first block of a file
  bool unclear_ = false;
};

// The `ssh -G` output for `name`, derived from that for `other`, a host with the same key. Nothing
// if other lines than `host` and `hostname` contain the other's name.
std::optional<std::string> SshAnswerFor(const std::string& name, const std::string& other,
                                        std::string_view answer);

}  // namespace hvd

#endif  // HVD_DISCOVERY_SSH_CONFIG_CHOICES_H_
