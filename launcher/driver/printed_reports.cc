#include "launcher/driver/printed_reports.h"

#include <chrono>
#include <utility>

#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {
namespace {

constexpr Duration kInterval = std::chrono::milliseconds(20);

}  // namespace

void PrintedReports::SendSoon() {
  if (std::exchange(scheduled_, true)) return;
  timer_.expires_after(kInterval);
  timer_.async_wait([this](const asio::error_code& error) {
    scheduled_ = false;
    if (!error) Send();
  });
}

void PrintedReports::Send() {
  for (const OutputPrinted& printed : screen_.PopPrinted())
    agents_.Send(state_.plan.ranks[printed.rank].host, printed);
  if (screen_.HoldsBack()) SendSoon();
}

}  // namespace hvd
