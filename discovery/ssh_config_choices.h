// Which hosts have the same ssh configuration, as far as its files tell: so that `ssh -G`, a
// process of some milliseconds, is run for one of them and not for each of hundreds. Hosts whose
// likeness is not certain are left to ssh. Pure.
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
  // The texts of the files that one word after `Include` stands for, in ssh's order; nothing: they
  // cannot be told.
  using Include =
      std::function<std::optional<std::vector<std::string>>(const std::string& pattern)>;

  // The next one of ssh's configuration files.
  void Read(std::string_view text, const Include& include) { Read(text, include, 0); }

  // Hosts with the same key have the same answer of `ssh -G`, but for their own name in `host` and
  // `hostname`. Nothing: only ssh knows what this host has.
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

// The answer of `ssh -G` for `name`, made of that for `other`, a host with the same key. Nothing
// where more than its `host` and `hostname` lines speak of the other: then its name went into
// values.
std::optional<std::string> SshAnswerFor(const std::string& name, const std::string& other,
                                        std::string_view answer);

}  // namespace hvd

#endif  // HVD_DISCOVERY_SSH_CONFIG_CHOICES_H_
