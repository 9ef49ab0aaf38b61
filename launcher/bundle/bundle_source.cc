#include "launcher/bundle/bundle_source.h"

#include <asio/post.hpp>
#include <exception>
#include <utility>

#include "launcher/bundle/remote_script.h"

namespace hvd {

BundleSource::BundleSource(asio::io_context& io, std::string executable)
    : io_(io), executable_(std::move(executable)) {}

BundleSource::~BundleSource() {
  for (Made& made : made_) {
    if (made.thread.joinable()) made.thread.join();
  }
}

void BundleSource::Get(Packing packing, Taker taker) {
  Made& made = made_[static_cast<size_t>(packing)];
  made.takers.push_back(std::move(taker));
  if (made.done) {
    asio::post(io_, [this, &made] { Deliver(made); });
  } else if (!made.thread.joinable()) {
    made.thread = std::thread([this, &made, packing] {
      try {
        Result<Bundle> bundle = MakeBundle(executable_, packing);
        made.bundle = bundle.ok()
                          ? Result<SharedBundle>(std::make_shared<const Bundle>(std::move(*bundle)))
                          : Result<SharedBundle>(bundle.status());
      } catch (const std::exception& failure) {
        made.bundle = OutOfMemory(failure.what());
      }
      asio::post(io_, [this, &made] { Deliver(made); });
    });
  }
}

void BundleSource::Deliver(Made& made) {
  made.done = true;
  for (const Taker& taker : std::exchange(made.takers, {})) taker(made.bundle);
}

void BundleFeed::Begin(SharedBundle bundle) {
  bundle_ = std::move(bundle);
  header_ = BundleHeader(*bundle_);
  sent_ = said_ = 0;
}

std::string_view BundleFeed::Outgoing() const {
  if (sent_ < header_.size()) return std::string_view(header_).substr(sent_);
  if (!bundle_) return {};
  return std::string_view(bundle_->bytes).substr(sent_ - header_.size());
}

bool BundleFeed::Moved(TimePoint now) {
  if (sent_ == said_ || now < next_) return false;
  said_ = sent_;
  next_ = now + kSay;
  return true;
}

}  // namespace hvd
