#include "launcher/external/mpi/ask_program.h"

#include <asio/io_context.hpp>
#include <string_view>
#include <utility>

#include "launcher/channels/command_channel.h"
#include "launcher/output/text/phrases.h"

namespace hvd {
namespace {

constexpr size_t kMaxOutput = size_t{1} << 20;
constexpr Duration kKillLimit = std::chrono::seconds(5);

class Question final : private ChannelObserver {
 public:
  Question(const std::vector<std::string>& command, std::shared_ptr<LocalFamily> family)
      : channel_(
            io_, command,
            [this](const CommandEnd& end) {
              errors_ = end.printed;
              return ChannelEnd{};
            },
            std::move(family)) {}

  Result<std::string> Ask(Duration limit) {
    channel_.Open(*this);
    io_.run_for(limit);
    if (!over_) {
      channel_.Kill();
      io_.run_for(kKillLimit);
      return Aborted("does not answer within " + SecondsText(limit));
    }
    if (!trouble_.empty()) return Aborted(trouble_);
    return output_ + errors_;
  }

 private:
  void OnStage(ChannelStage) override {}
  void OnBytes(std::string_view bytes) override {
    if (output_.size() < kMaxOutput) output_.append(bytes);
  }
  void OnWritable() override {}
  void OnEnd(const ChannelEnd& end) override {
    over_ = true;
    trouble_ = end.reason;
    io_.stop();
  }

  asio::io_context io_{1};
  std::string output_, errors_, trouble_;
  bool over_ = false;
  CommandChannel channel_;
};

}  // namespace

Result<std::string> AskProgram(const std::vector<std::string>& command,
                               const std::shared_ptr<LocalFamily>& family, Duration limit) {
  return Question(command, family).Ask(limit);
}

}  // namespace hvd
