// BundleSource: builds the bundle by tar on first demand and shares it among hosts. BundleFeed:
// sends it to one host.
//
// Main thread only. The io_context outlives the source; no callback runs after the source's
// destructor.
#ifndef HVD_LAUNCHER_CHANNELS_BUNDLE_BUNDLE_SOURCE_H_
#define HVD_LAUNCHER_CHANNELS_BUNDLE_BUNDLE_SOURCE_H_

#include <asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/channels/bundle/bundle.h"
#include "launcher/process/local_family.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

using SharedBundle = std::shared_ptr<const Bundle>;

class BundleSource {
 public:
  using Callback = std::function<void(const Result<SharedBundle>&)>;

  // From the start of tar to its end.
  static constexpr Duration kLimit = std::chrono::seconds(30);

  // `executable`: this hvdrun. `family`: shared by all channels of this process.
  BundleSource(asio::io_context& io, std::string executable, std::shared_ptr<LocalFamily> family,
               Duration limit = kLimit);
  ~BundleSource();
  BundleSource(const BundleSource&) = delete;
  BundleSource& operator=(const BundleSource&) = delete;

  // `callback` is called once, after this call has returned, with the bundle or a one-sentence
  // error.
  void Get(Packing packing, Callback callback);

 private:
  class Packer;
  struct Made {
    std::unique_ptr<Packer> packer;
    std::optional<Result<SharedBundle>> bundle;
    std::vector<Callback> callbacks;
  };
  void Begin(Made& made, Packing packing);
  void Deliver(Made& made, Result<SharedBundle> bundle);

  asio::io_context& io_;
  std::string executable_;
  std::shared_ptr<LocalFamily> family_;
  Duration limit_;
  Made made_[2];  // by Packing
};

// Pure: time is passed in.
class BundleFeed {
 public:
  // Interval of progress reports.
  static constexpr Duration kReportEvery = std::chrono::milliseconds(500);

  void Begin(SharedBundle bundle);
  // The bytes to send next; empty: none left.
  std::string_view Outgoing() const;
  void Consume(size_t count) { sent_ += count; }
  // True at most every kReportEvery, and only if more was sent since the last time.
  bool Moved(TimePoint now);

 private:
  std::string header_;
  SharedBundle bundle_;
  size_t sent_ = 0, reported_ = 0;
  TimePoint next_{};
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_BUNDLE_SOURCE_H_
