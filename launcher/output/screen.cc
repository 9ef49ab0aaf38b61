#include "launcher/output/screen.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "launcher/output/lines.h"
#include "launcher/output/text/columns.h"
#include "runtime/base/colours.h"
#include "runtime/base/env.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Whether it is a terminal with cursor control.
bool IsTerminal(int fd) { return ::isatty(fd) == 1 && GetEnv("TERM").value_or("dumb") != "dumb"; }

// 0: unknown.
size_t ColumnsOfTerminal(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// Whether both are the same file: `2>&1`, or one terminal.
bool OnePlace(int one, int other) {
  struct stat a {
  }, b{};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino && a.st_rdev == b.st_rdev;
}

std::vector<PrefixPlace> PlacesOf(const Plan& plan) {
  std::vector<PrefixPlace> places;
  for (const Placement& place : plan.ranks)
    places.push_back({plan.hosts[place.host], place.local_rank});
  return places;
}

bool HasColours(const Settings& settings, int fd) {
  return settings.color == ColorUse::kAlways ||
         (settings.color != ColorUse::kNever && WantsColours(fd));
}

// The report on the job's end, with its first word in red.
std::string InColours(const std::string& text) {
  constexpr std::string_view kFirst = "hvdrun:";
  return text.starts_with(kFirst) ? Red(kFirst) + text.substr(kFirst.size()) : text;
}

PrefixStyle StyleOf(const Plan& plan, const Settings& settings, const PrefixTemplate& prefix,
                    int fd) {
  PrefixStyle style;
  style.color = HasColours(settings, fd);
  style.terminal = IsTerminal(fd);
  style.columns = [fd] { return ColumnsOfTerminal(fd); };
  style.stamp = settings.prefix_timestamp;
  style.wall_seconds = WallSeconds;
  style.prefix = prefix;
  style.places = PlacesOf(plan);
  return style;
}

ScreenTextOptions TextOptionsOf(const Plan& plan, uint32_t ranks, const Settings& settings,
                                const PrefixTemplate& prefix, int fd) {
  return {ranks, settings.progress_rate, settings.fold, StyleOf(plan, settings, prefix, fd)};
}

}  // namespace

Screen::Screen(asio::io_context& io, const Plan& plan, uint32_t ranks, const Settings& settings,
               const PrefixTemplate& prefix, OnLeft on_left, std::shared_ptr<PrintedOutput> printed)
    : io_(io),
      on_left_(std::move(on_left)),
      printed_(std::move(printed)),
      ranks_(ranks),
      places_(PlacesOf(plan)),
      written_(std::max<size_t>(1, plan.hosts.size())),
      held_timer_(io),
      progress_timer_(io),
      one_place_(OnePlace(STDOUT_FILENO, STDERR_FILENO)),
      on_terminal_(::isatty(STDERR_FILENO) == 1),
      colours_(HasColours(settings, STDERR_FILENO)),
      lines_{ScreenLine{.tracks = printed_ != nullptr}, ScreenLine{}},
      outlets_{
          Outlet{"stdout",
                 ScreenText(OutputStream::kStdout,
                            TextOptionsOf(plan, ranks, settings, prefix, STDOUT_FILENO), lines_[0]),
                 OutputWriter(STDOUT_FILENO, ReceiptsOf(Sink::kScreen), printed_)},
          Outlet{"stderr",
                 ScreenText(OutputStream::kStderr,
                            TextOptionsOf(plan, ranks, settings, prefix, STDERR_FILENO),
                            lines_[one_place_ ? 0 : 1]),
                 OutputWriter(STDERR_FILENO, ReceiptsOf(Sink::kScreen))}} {
  if (printed_) printed_->Recover();
  if (!settings.output_filename.empty())
    files_ =
        std::make_unique<OutputFiles>(settings.output_filename, ranks_, settings.output_limit_bytes,
                                      ReceiptsOf(Sink::kFiles), printed_);
  if (!printed_) return;
  const PrintedOutput::OpenLine open = printed_->open_line();
  if (!open.is_open) return;
  worker_of(open.rank) = open.worker;
  (open.stream == OutputStream::kStdout ? out() : err()).text.GoOnWith(open.rank, open.returned);
}

// Restored from a former hvdrun.
Screen::Place& Screen::place_of(uint32_t worker, OutputStream stream) {
  for (size_t at = come_.size(); at <= 2 * size_t{worker} + 1; ++at) {
    const auto other = static_cast<uint32_t>(at / 2);
    const OutputStream its = at % 2 == 0 ? OutputStream::kStdout : OutputStream::kStderr;
    Place place;
    place.on_screen = printed_->printed(other, its);
    place.in_file = files_ ? printed_->in_file(other, its) : place.on_screen;
    place.come = place.reported = std::min(place.on_screen, place.in_file);
    come_.push_back(place);
  }
  return come_[2 * size_t{worker} + (stream == OutputStream::kStdout ? 0 : 1)];
}

// In a job of fixed size they have one number.
uint32_t& Screen::worker_of(uint32_t rank) {
  while (worker_of_.size() <= rank) worker_of_.push_back(static_cast<uint32_t>(worker_of_.size()));
  return worker_of_[rank];
}

// Text held back for the rank belongs to its previous worker, and is counted for that one.
void Screen::UseWorker(uint32_t rank, uint32_t worker) {
  if (worker_of(rank) == worker) return;
  for (Outlet& outlet : outlets_) outlet.text.Finish();
  Flush();
  worker_of(rank) = worker;
}

void Screen::UseRank(uint32_t rank, const std::string& host, uint32_t local_rank) {
  if (rank >= places_.size()) places_.resize(rank + 1);
  places_[rank] = {host, local_rank};
  for (Outlet& outlet : outlets_) outlet.text.set_places(places_);
}

// ---- the workers' output

void Screen::Print(uint32_t host, uint32_t worker, const WorkerOutputView& output,
                   size_t message_bytes) {
  EndProgress();
  if (host >= written_.size()) written_.resize(host + 1);
  std::string_view for_screen = output.bytes, for_file = output.bytes;
  if (printed_ && worker < printed_->workers()) {
    UseWorker(output.rank, worker);
    Place& place = place_of(worker, output.stream);
    const auto rest = [&](uint64_t done) {
      const uint64_t over = done > place.come ? done - place.come : 0;
      return output.bytes.substr(std::min<uint64_t>(over, output.bytes.size()));
    };
    for_screen = rest(place.on_screen);
    for_file = rest(place.in_file);
    place.come += output.bytes.size();
  }
  if (files_)
    files_->Write(output.rank, worker, output.stream, std::string(for_file), {host, message_bytes});
  Outlet& outlet = output.stream == OutputStream::kStdout ? out() : err();
  outlet.receipt = {host, outlet.receipt.log_bytes + message_bytes};
  outlet.text.Add(output.rank, for_screen, SteadyNow());
  if (on_terminal_ && (one_place_ || &outlet == &err()))
    shown_.Add(output.rank, output.stream, for_screen);
  ScheduleHeld();
}

// Output that is held back counts as shown, because its size is bounded.
void Screen::Flush() {
  for (Outlet& outlet : outlets_) {
    std::vector<PrintedSpan>& spans = line_of(outlet).spans;
    for (PrintedSpan& span : spans) span.worker = worker_of(span.rank);
    writer_of(outlet).WriteAndClear(line_of(outlet).text, spans, std::exchange(outlet.receipt, {}));
  }
}

uint64_t Screen::PrintedOf(uint32_t worker, OutputStream stream) const {
  const uint64_t on_screen = printed_->printed(worker, stream);
  return files_ ? std::min(on_screen, printed_->in_file(worker, stream)) : on_screen;
}

TakeOver Screen::printed(uint32_t workers) const {
  TakeOver all;
  for (uint32_t worker = 0; printed_ && worker < std::min(workers, printed_->workers()); ++worker) {
    for (OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr})
      all.printed.push_back({worker, stream, PrintedOf(worker, stream)});
  }
  return all;
}

bool Screen::HoldsBack() const {
  return std::ranges::any_of(come_, [](const Place& place) { return place.reported < place.come; });
}

std::vector<OutputPrinted> Screen::PopPrinted() {
  std::vector<OutputPrinted> printed;
  for (uint32_t worker = 0; 2 * size_t{worker} < come_.size(); ++worker) {
    for (OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr}) {
      Place& place = place_of(worker, stream);
      if (place.reported >= place.come) continue;
      const uint64_t now = PrintedOf(worker, stream);
      if (now <= std::exchange(place.reported, std::max(place.reported, now))) continue;
      printed.push_back({worker, stream, now});
    }
  }
  return printed;
}

OutputWriter& Screen::writer_of(const Outlet& outlet) {
  return one_place_ || &outlet == &out() ? out().writer : err().writer;
}

ScreenLine& Screen::line_of(const Outlet& outlet) {
  return lines_[one_place_ || &outlet == &out() ? 0 : 1];
}

// The echo of typed text has ended the line; the next output begins a new one.
void Screen::Typed(std::string_view bytes) {
  EndProgress();
  if (!bytes.ends_with('\n')) return;
  if (::isatty(STDOUT_FILENO) == 1) out().text.LineTyped();
  if (::isatty(STDERR_FILENO) == 1) err().text.LineTyped();
}

bool Screen::on_terminal() const { return on_terminal_; }

void Screen::ScheduleHeld() {
  std::optional<TimePoint> next;
  for (const Outlet& outlet : outlets_) {
    std::optional<TimePoint> due = outlet.text.deadline();
    if (due && (!next || *due < *next)) next = due;
  }
  if (!next || held_timer_.expiry() == *next) return;
  held_timer_.expires_at(*next);
  held_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    const TimePoint now = SteadyNow();
    for (Outlet& outlet : outlets_) outlet.text.Due(now);
    Flush();
    ScheduleHeld();
  });
}

// Called on the thread of a sink.
std::function<void(std::vector<OutputReceipt>)> Screen::ReceiptsOf(Sink sink) {
  return [this, sink](std::vector<OutputReceipt> receipts) {
    asio::post(io_, [this, sink, receipts = std::move(receipts)] { OnWritten(sink, receipts); });
  };
}

void Screen::OnWritten(Sink sink, const std::vector<OutputReceipt>& receipts) {
  for (const OutputReceipt& receipt : receipts)
    written_[receipt.host].bytes[static_cast<int>(sink)] += receipt.log_bytes;
  for (uint32_t host = 0; host < written_.size(); ++host) {
    Written& written = written_[host];
    uint64_t left = files_ ? std::min(written.bytes[0], written.bytes[1]) : written.bytes[0];
    if (left == written.returned) continue;
    on_left_(host, left - std::exchange(written.returned, left));
  }
  if (files_) ReportFileFailure();
  ReportScreenFailure(/*at_end=*/false);
}

// ---- hvdrun's own lines

void Screen::UsePlan(const Plan& plan) {
  for (Outlet& outlet : outlets_) outlet.text.set_places(PlacesOf(plan));
}

void Screen::Print(const std::string& sentence) {
  EndProgress();
  err().text.AddOwn("hvdrun: " + sentence + "\n");
  Flush();
}

void Screen::ReportFileFailure() {
  if (std::optional<std::string> failure = files_->PopFailure()) Print(*failure);
}

// Also if the reader has left: after `hvdrun | head` the shell waits for the job without a visible
// reason. Failures of stderr cannot be reported.
void Screen::ReportScreenFailure(bool at_end) {
  const int error = out().writer.error();
  if (error == 0 || std::exchange(out().failure_said, true)) return;
  std::string sentence = error == EPIPE
                             ? "the reader of stdout has gone"
                             : std::string("stdout cannot be written: ") + std::strerror(error);
  Print(sentence + (at_end ? "; what the ranks printed there last is lost"
                           : "; the job goes on, and what its ranks print there is lost"));
}

void Screen::BeginProgress(HostCounts hosts) {
  if (!IsTerminal(STDERR_FILENO)) return;
  hosts_ = std::move(hosts);
  progress_.emplace(ranks_, SteadyNow(), hosts_ != nullptr);
  ScheduleProgress();
}

void Screen::HostsChanged() {
  if (!progress_) return;
  progress_->HostsChanged();
  ScheduleProgress();
}

void Screen::HostsReady() {
  if (!progress_) return;
  progress_->HostsReady();
  hosts_ = nullptr;
  ScheduleProgress();
}

void Screen::WorkerStarted() {
  if (!progress_) return;
  progress_->WorkerStarted();
  ScheduleProgress();
}

void Screen::RankJoined(uint32_t rank) {
  if (!progress_) return;
  progress_->RankJoined(rank);
  ScheduleProgress();
}

void Screen::ScheduleProgress() {
  std::optional<TimePoint> due = progress_->due();
  if (!due || progress_timer_.expiry() == *due) return;
  progress_timer_.expires_at(*due);
  progress_timer_.async_wait([this](const asio::error_code& error) {
    if (error || !progress_) return;
    std::string shown = progress_->Show(SteadyNow(), hosts_ ? hosts_() : "");
    const size_t columns = ColumnsOfTerminal(STDERR_FILENO);  // a wrapped line cannot be erased
    if (columns > 1) shown = CutToColumns(shown, columns);    // with the "\r" that it begins with
    writer_of(err()).Write(std::move(shown));
    ScheduleProgress();
  });
}

// stdout is on the same terminal: the line must be erased before that continues, unless the
// terminal is stopped.
void Screen::EndProgress() {
  if (!progress_) return;
  std::string wipe = progress_->Wipe();
  progress_.reset();
  progress_timer_.cancel();
  if (wipe.empty()) return;
  writer_of(err()).Write(std::move(wipe));
  writer_of(err()).FlushFor(std::chrono::milliseconds(50));
}

// ---- the end

void Screen::Finish(const std::string& last, std::chrono::milliseconds limit) {
  EndProgress();
  for (Outlet& outlet : outlets_) outlet.text.Finish();
  Flush();
  if (files_) {
    files_->Flush();
    ReportFileFailure();
  }
  for (Outlet& outlet : outlets_) outlet.writer.FlushFor(limit);
  ReportScreenFailure(/*at_end=*/true);
  ReportLost();
  err().text.AddOwn(colours_ ? InColours(last) : last);
  Flush();
  if (!writer_of(err()).FlushFor(limit)) writer_of(err()).GiveUp();
}

void Screen::ReportLost() {
  if (out().writer.FlushFor(std::chrono::milliseconds(0))) {
    if (unsent_) Print("some of what the ranks printed last may be lost: it was not waited for");
    return;
  }
  Print(Format("nobody reads stdout, so the last of the output is lost: {} bytes{}",
               out().writer.GiveUp(), unsent_ ? ", and what the hosts had not sent yet" : ""));
}

int Screen::exit_code() const {
  constexpr int kBrokenPipe = 128 + SIGPIPE, kCannotWrite = 1;
  auto code_of = [](int error) {
    return error == 0 ? 0 : error == EPIPE ? kBrokenPipe : kCannotWrite;
  };
  if (int code = code_of(outlets_[0].writer.error()); code != 0) return code;
  const int error = outlets_[1].writer.error();
  return error == EBADF ? 0 : code_of(error);  // the user closed it with `2>&-`
}

}  // namespace hvd
