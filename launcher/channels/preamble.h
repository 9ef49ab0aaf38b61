// Preamble: separates a login shell's output (start-up files, message of the day) from the agent's
// bytes, which follow a greeting. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_PREAMBLE_H_
#define HVD_LAUNCHER_CHANNELS_PREAMBLE_H_

#include <optional>
#include <string>
#include <string_view>

namespace hvd {

class Preamble {
 public:
  static constexpr size_t kMost = 256 * 1024;

  // An empty greeting: no preamble.
  explicit Preamble(std::string greeting) : greeting_(std::move(greeting)) {
    over_ = greeting_.empty();
  }

  // Returns the bytes after the greeting; nothing until that has arrived.
  std::optional<std::string> Consume(std::string_view bytes);
  // The rest of the next line that begins like the greeting and continues; said() then omits the
  // line.
  std::optional<std::string> PopSuffix();
  bool over() const { return over_; }
  bool too_long() const { return !over_ && received_.size() > kMost; }
  // The shell's last line, for messages.
  std::string printed() const;

 private:
  std::string greeting_, received_;
  bool over_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_PREAMBLE_H_
