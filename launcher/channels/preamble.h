// Preamble: the words of a login shell (start-up files, messages of the day) before the agent's own
// bytes begin, told apart by a greeting. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_PREAMBLE_H_
#define HVD_LAUNCHER_CHANNELS_PREAMBLE_H_

#include <optional>
#include <string>
#include <string_view>

namespace hvd {

class Preamble {
 public:
  static constexpr size_t kMost = 256 * 1024;

  // An empty greeting: there is no preamble.
  explicit Preamble(std::string greeting) : greeting_(std::move(greeting)) {
    over_ = greeting_.empty();
  }

  // Once the greeting has come, the bytes after it; nothing before.
  std::optional<std::string> Take(std::string_view bytes);
  // The next line that began as the greeting does and went on with these words; said() then leaves
  // it out.
  std::optional<std::string> PopSuffix();
  bool over() const { return over_; }
  bool too_long() const { return !over_ && said_.size() > kMost; }
  // The last line that was said, for messages.
  std::string said() const;

 private:
  std::string greeting_, said_;
  bool over_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_PREAMBLE_H_
