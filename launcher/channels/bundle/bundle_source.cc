#include "launcher/channels/bundle/bundle_source.h"

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <utility>

#include "configs/message_text.h"
#include "launcher/channels/bundle/bundle.h"
#include "launcher/channels/bundle/remote_script.h"
#include "launcher/channels/command_channel.h"
#include "launcher/output/text/phrases.h"

namespace hvd {
namespace {

Status CannotPack(const std::string& reason) {
  return Internal("tar cannot pack it here: " + reason +
                  "; install GNU tar and gzip here, or install hvdrun there");
}

// The error of a run of tar; an empty reason if it succeeded.
ChannelEnd ReadTarEnd(const CommandEnd& end) {
  ChannelEnd read;
  if (end.wait_status == 0) return read;
  read.reason = Printable(end.printed.substr(0, end.printed.find('\n')), kMaxShownPath);
  if (read.reason.empty()) read.reason = "it was killed";
  return read;
}

}  // namespace

// One run of tar.
class BundleSource::Packer final : private ChannelObserver {
 public:
  using Done = std::function<void(Result<SharedBundle>)>;

  Packer(asio::io_context& io, std::vector<std::string> command,
         std::shared_ptr<LocalFamily> family, Duration limit, Done done)
      : channel_(io, std::move(command), ReadTarEnd, std::move(family)),
        limit_(io),
        allowed_(limit),
        done_(std::move(done)) {
    limit_.expires_after(limit);
    limit_.async_wait([this](const asio::error_code& error) {
      if (error) return;
      late_ = true;
      channel_.Kill();
    });
    channel_.Open(*this);
  }
  ~Packer() { channel_.Kill(); }

 private:
  void OnStage(ChannelStage) override {}
  void OnBytes(std::string_view bytes) override { bytes_.append(bytes); }
  void OnWritable() override {}
  void OnEnd(const ChannelEnd& end) override {
    limit_.cancel();
    if (late_) return done_(CannotPack("it took longer than " + SecondsText(allowed_)));
    if (!end.reason.empty()) return done_(CannotPack(end.reason.substr(0, end.reason.find(';'))));
    std::string sha256 = Sha256Hex(bytes_);
    done_(std::make_shared<const Bundle>(Bundle{std::move(bytes_), std::move(sha256)}));
  }

  CommandChannel channel_;
  asio::steady_timer limit_;
  const Duration allowed_;
  Done done_;
  std::string bytes_;
  bool late_ = false;
};

BundleSource::BundleSource(asio::io_context& io, std::string executable,
                           std::shared_ptr<LocalFamily> family, Duration limit)
    : io_(io), executable_(std::move(executable)), family_(std::move(family)), limit_(limit) {}

BundleSource::~BundleSource() = default;

void BundleSource::Get(Packing packing, Callback callback) {
  Made& made = made_[static_cast<size_t>(packing)];
  made.callbacks.push_back(std::move(callback));
  if (made.bundle) {
    asio::post(io_, [this, &made] { Deliver(made, *made.bundle); });
  } else if (made.callbacks.size() == 1) {
    Begin(made, packing);
  }
}

void BundleSource::Begin(Made& made, Packing packing) {
  auto done = [this, &made](Result<SharedBundle> bundle) { Deliver(made, std::move(bundle)); };
  Result<std::vector<std::string>> command = BundleCommand(executable_, packing);
  if (!command.ok()) {
    asio::post(io_, [done, status = command.status()] { done(status); });
  } else {
    made.packer = std::make_unique<Packer>(io_, std::move(*command), family_, limit_, done);
  }
}

void BundleSource::Deliver(Made& made, Result<SharedBundle> bundle) {
  made.bundle = std::move(bundle);
  for (const Callback& callback : std::exchange(made.callbacks, {})) callback(*made.bundle);
}

void BundleFeed::Begin(SharedBundle bundle) {
  bundle_ = std::move(bundle);
  header_ = BundleHeader(*bundle_);
  sent_ = reported_ = 0;
}

std::string_view BundleFeed::Outgoing() const {
  if (sent_ < header_.size()) return std::string_view(header_).substr(sent_);
  if (!bundle_) return {};
  return std::string_view(bundle_->bytes).substr(sent_ - header_.size());
}

bool BundleFeed::Moved(TimePoint now) {
  if (sent_ == reported_ || now < next_) return false;
  reported_ = sent_;
  next_ = now + kReportEvery;
  return true;
}

}  // namespace hvd
