#include "timeline/read/trace_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

// Larger stamps count from 1970.
constexpr int64_t kAbsoluteNs = int64_t{300'000'000} * 1'000'000'000;

constexpr char kHalf[] = "ends in the middle: its writer was killed or is still at work";

Status Unreadable(const std::string& path, int error) {
  return InvalidArgument(path + " cannot be read: " + std::strerror(error));
}

Status NoTrace(const std::string& path, const std::string& because) {
  return InvalidArgument(path + " is no trace: " + because +
                         "; name a timeline of hvdrun or a trace of PyTorch's profiler");
}

}  // namespace

TraceSource::TraceSource(std::string path, uint64_t size, ReadAt read_at)
    : size_(size), read_at_(std::move(read_at)) {
  origin_.path = std::move(path);
}

Result<std::unique_ptr<TraceSource>> TraceSource::Open(const std::string& path) {
  // Opening a pipe would block until there is a writer.
  auto fd = std::make_shared<UniqueFd>(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat stat = {};
  if (fd->get() < 0 || ::fstat(fd->get(), &stat) != 0) return Unreadable(path, errno);
  if (S_ISDIR(stat.st_mode)) return Unreadable(path, EISDIR);
  if (!S_ISREG(stat.st_mode))
    return InvalidArgument(path + " is no regular file; write the trace into one first");
  (void)::posix_fadvise(fd->get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  auto read_at = [fd](char* to, size_t most, uint64_t offset) {
    return static_cast<int64_t>(::pread(fd->get(), to, most, static_cast<off_t>(offset)));
  };
  return Begin(std::unique_ptr<TraceSource>(
      new TraceSource(path, static_cast<uint64_t>(stat.st_size), std::move(read_at))));
}

Result<std::unique_ptr<TraceSource>> TraceSource::OfText(const std::string& name,
                                                         std::string text) {
  const uint64_t size = text.size();
  auto read_at = [text = std::move(text)](char* to, size_t most, uint64_t offset) {
    const size_t count = std::min(most, text.size() - std::min<size_t>(text.size(), offset));
    if (count > 0) std::memcpy(to, text.data() + offset, count);
    return static_cast<int64_t>(count);
  };
  return Begin(std::unique_ptr<TraceSource>(new TraceSource(name, size, std::move(read_at))));
}

Result<std::unique_ptr<TraceSource>> TraceSource::Begin(std::unique_ptr<TraceSource> source) {
  HVD_RETURN_IF_ERROR(source->ReadHead());
  source->peeked_ = source->Next() != nullptr;
  source->events_ = 0;
  if (!source->status_.ok()) return source->status_;
  source->FindZero();
  return source;
}

// Reads more of the file into the buffer; false: there is no more, or status_ has the reason.
bool TraceSource::Refill() {
  if (at_end_ || !status_.ok()) return false;
  if (at_ > 0) std::memmove(buffer_.data(), buffer_.data() + at_, used_ - at_);
  used_ -= std::exchange(at_, 0);
  if (used_ > kLongestEvent) {
    Fail("has an event of more than 64 MiB");
    return false;
  }
  const size_t wanted = used_ < kBlock / 2 ? kBlock : 2 * used_ + kBlock;
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  int64_t count = 0;
  do {
    count = read_at_(buffer_.data() + used_, buffer_.size() - used_, offset_);
  } while (count < 0 && errno == EINTR);
  if (count < 0) status_ = Unreadable(origin_.path, errno);
  if (count <= 0) {
    at_end_ = true;
    return false;
  }
  used_ += static_cast<size_t>(count);
  offset_ += static_cast<uint64_t>(count);
  return true;
}

const TraceEvent* TraceSource::Fail(const std::string& what) {
  if (status_.ok())
    status_ = InvalidArgument(Format("{} {}, after {}{}", origin_.path, what, events_,
                                     events_ == 1 ? " event" : " events"));
  place_ = Place::kOver;
  return nullptr;
}

// There is a character other than a space; false: end of file.
bool TraceSource::EnsureText() {
  for (;;) {
    JsonWalk walk = Walk();
    const Walked walked = walk.Space();
    StandAt(walk);
    if (walked == Walked::kWhole) return true;
    if (!Refill()) return false;
  }
}

// Members of an object before its events; kWhole at the bracket after "traceEvents".
Walked TraceSource::ReadHeadMembers(JsonWalk* walk) {
  (void)walk->Accept('{');
  for (;;) {
    if (walk->Space() != Walked::kWhole) return Walked::kCut;
    if (*walk->at() != '"') return Walked::kBad;
    const char* name = walk->at() + 1;
    if (const Walked walked = walk->String(); walked != Walked::kWhole) return walked;
    const std::string_view key(name, static_cast<size_t>(walk->at() - 1 - name));
    if (walk->Space() != Walked::kWhole) return Walked::kCut;
    if (!walk->Accept(':')) return Walked::kBad;
    if (walk->Space() != Walked::kWhole) return Walked::kCut;
    if (key == "traceEvents") return walk->Accept('[') ? Walked::kWhole : Walked::kBad;
    const char* value = walk->at();
    if (const Walked walked = walk->Value(); walked != Walked::kWhole) return walked;
    if (key == "distributedInfo") {
      ForEachMember({value, static_cast<size_t>(walk->at() - value)},
                    [this](std::string_view member, std::string_view number) {
                      if (member == "rank") origin_.rank = IntegerOf(number, -1);
                    });
    }
    if (walk->Space() != Walked::kWhole) return Walked::kCut;
    if (!walk->Accept(',')) return Walked::kBad;
  }
}

Status TraceSource::ReadHead() {
  if (!EnsureText()) {
    if (!status_.ok()) return status_;
    return NoTrace(origin_.path, "it is empty");
  }
  if (buffer_[at_] == '\x1f' && used_ - at_ > 1 && buffer_[at_ + 1] == '\x8b')
    return InvalidArgument(origin_.path + " is compressed; unpack it with gunzip first");
  if (buffer_[at_] == '[') {
    ++at_;
    return Status::Ok();
  }
  if (buffer_[at_] != '{') return NoTrace(origin_.path, "it begins with neither [ nor {");
  origin_.object = true;
  for (;;) {
    JsonWalk walk = Walk();
    const Walked walked = ReadHeadMembers(&walk);
    if (walked == Walked::kWhole) {
      StandAt(walk);
      FindBaseTime();
      return Status::Ok();
    }
    if (walked == Walked::kBad)
      return NoTrace(origin_.path, "it is an object without a list \"traceEvents\"");
    if (!Refill()) {
      if (!status_.ok()) return status_;
      return NoTrace(origin_.path, "it ends before its events");
    }
  }
}

// Kineto writes it after the events. Inside a string, the quotes would be escaped.
void TraceSource::FindBaseTime() {
  constexpr size_t kTail = 65536;
  constexpr std::string_view kKey = "\"baseTimeNanoseconds\"";
  std::string tail(kTail, '\0');
  const uint64_t from = size_ > kTail ? size_ - kTail : 0;
  const int64_t count = read_at_(tail.data(), tail.size(), from);
  tail.resize(static_cast<size_t>(std::max<int64_t>(count, 0)));
  const std::string head(buffer_.data(), at_);
  for (const std::string* text : std::initializer_list<const std::string*>{&tail, &head}) {
    const size_t found = text->rfind(kKey);
    if (found == std::string::npos) continue;
    size_t at = found + kKey.size();
    while (at < text->size() && std::strchr(" :\t\r\n", (*text)[at]) != nullptr) ++at;
    const size_t end = text->find_first_not_of("0123456789", at);
    const std::string_view number = std::string_view(*text).substr(
        at, end == std::string::npos ? std::string_view::npos : end - at);
    if (const int64_t base = IntegerOf(number, -1); base >= 0) {
      origin_.zero_ns = base;
      return;
    }
  }
}

void TraceSource::FindZero() {
  if (!peeked_) return;
  ForEachMember(event_.args, [this](std::string_view key, std::string_view value) {
    constexpr int64_t kMostMicros = int64_t{9'000'000'000'000'000};
    if (key != "start_time_since_epoch_in_micros") return;
    const int64_t micros = IntegerOf(value, -1);
    if (micros < 0 || micros > kMostMicros) return;
    origin_.timeline = true;
    origin_.zero_ns = micros * 1000;
  });
  const auto first = NanosecondsOf(event_.ts);
  if (!origin_.zero_ns && first && *first > kAbsoluteNs) origin_.zero_ns = 0;
}

// Moves to the next event; false: there is none.
bool TraceSource::BeforeEvent() {
  if (!BeforeEventOrComma()) return false;
  if (place_ == Place::kBetween) {
    if (buffer_[at_] != ',') {
      Fail("has no comma between two events");
      return false;
    }
    ++at_;
    // Writers that end with a comma are common, and Chrome accepts them.
    if (!BeforeEventOrComma()) return false;
  }
  place_ = Place::kBetween;
  return true;
}

// True before anything other than the end of the events; false at that end, or at the end of the
// file.
bool TraceSource::BeforeEventOrComma() {
  if (!EnsureText()) {
    Fail(kHalf);
    return false;
  }
  if (buffer_[at_] != ']') return true;
  ++at_;
  place_ = Place::kBehind;
  return false;
}

// Reads the text after the events. Nothing may follow an array.
bool TraceSource::ReadRest() {
  place_ = Place::kOver;
  if (!origin_.object) {
    if (EnsureText()) Fail("goes on behind its end");
    return false;
  }
  for (;;) {
    if (!EnsureText()) break;
    if (buffer_[at_] == '}') {
      ++at_;
      if (EnsureText()) Fail("goes on behind its end");
      return false;
    }
    JsonWalk walk = Walk();
    Walked walked = Walked::kBad;
    if (walk.Accept(',') && (walked = walk.Space()) == Walked::kWhole && *walk.at() == '"' &&
        (walked = walk.String()) == Walked::kWhole && (walked = walk.Space()) == Walked::kWhole) {
      walked = Walked::kBad;
      if (walk.Accept(':') && (walked = walk.Space()) == Walked::kWhole) walked = walk.Value();
    }
    if (walked == Walked::kWhole) {
      StandAt(walk);
    } else if (walked == Walked::kBad) {
      Fail("is no JSON behind its events");
      return false;
    } else if (!Refill()) {
      break;
    }
  }
  Fail(kHalf);
  return false;
}

const TraceEvent* TraceSource::Next() {
  for (;;) {
    const TraceEvent* event = NextOfAny();
    if (event == nullptr || kept_pid_.empty() || event->pid == kept_pid_) return event;
  }
}

const TraceEvent* TraceSource::NextOfAny() {
  if (std::exchange(peeked_, false)) {
    ++events_;
    return &event_;
  }
  if (place_ == Place::kOver) return nullptr;
  if (!BeforeEvent()) {
    if (place_ == Place::kBehind) ReadRest();
    return nullptr;
  }
  for (;;) {
    JsonWalk walk = Walk();
    const Walked walked = ReadTraceEvent(&walk, &event_);
    if (walked == Walked::kWhole) {
      StandAt(walk);
      ++events_;
      return &event_;
    }
    if (walked == Walked::kBad) return Fail("has something that is no event in JSON");
    if (!Refill()) return Fail(kHalf);
  }
}

}  // namespace hvd
