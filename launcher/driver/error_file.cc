#include "launcher/driver/error_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "launcher/driver/report.h"
#include "launcher/output/output.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// How many bytes of UTF-8 begin here; 0 when they are none.
size_t Utf8Length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  if (first < 0x80) return 1;
  size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                  : first >= 0xE0 && first <= 0xEF ? 3
                  : first >= 0xF0 && first <= 0xF4 ? 4
                                                   : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  unsigned char second = byte(1);
  bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  bool outside = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || outside ? 0 : length;
}

std::string Escaped(unsigned char c) {
  switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '\r': return "\\r";
    default: break;
  }
  if (c >= 0x20) return std::string(1, static_cast<char>(c));
  char text[8];
  std::snprintf(text, sizeof text, "\\u%04x", c);
  return text;
}

const char* KindName(JobFailure::Kind kind) {
  switch (kind) {
    case JobFailure::Kind::kRank: return "rank";
    case JobFailure::Kind::kCommand: return "command";
    case JobFailure::Kind::kHost:
    case JobFailure::Kind::kHosts: return "host";
    case JobFailure::Kind::kInterrupt: return "interrupt";
    case JobFailure::Kind::kTimeout: return "timeout";
    case JobFailure::Kind::kInternal: return "internal";
    case JobFailure::Kind::kEnding: return "ending";
    case JobFailure::Kind::kWay: return "connection";
  }
  return "internal";
}

class JsonObject {
 public:
  void Text(const char* name, std::string_view text) { Raw(name, JsonString(text)); }
  void Number(const char* name, int64_t number) { Raw(name, std::to_string(number)); }
  void Bool(const char* name, bool value) { Raw(name, value ? "true" : "false"); }
  void Raw(const char* name, const std::string& value) {
    text_ += (text_.empty() ? "{\n  \"" : ",\n  \"") + std::string(name) + "\": " + value;
  }
  std::string Close() const { return text_ + "\n}\n"; }

 private:
  std::string text_;
};

std::string JsonList(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& item : list) text += (text.empty() ? "[" : ", ") + JsonString(item);
  return text.empty() ? "[]" : text + "]";
}

void AddRank(JsonObject& json, const JobState& state, uint32_t number) {
  const RankRecord& rank = state.ranks[number];
  json.Number("rank", number);
  json.Text("host", state.plan.hosts[state.plan.ranks[number].host]);
  json.Number("pid", rank.pid);
  json.Text("cause", DescribeCause(rank));
  if (rank.end && rank.end->by_signal) {
    json.Number("signal", rank.end->value);
    json.Text("signal_name", SignalName(rank.end->value));
  }
  json.Bool("out_of_memory", rank.out_of_memory);
  json.Bool("inside_world", rank.lost);
  json.Text("stderr", rank.last_stderr);
  json.Number("others_ended", static_cast<int64_t>(CountEndedBecause(state, number)));
}

// Every rank's state, for programs that look at more than the first cause.
std::string RanksJson(const JobState& state) {
  std::string list;
  for (uint32_t number = 0; number < state.ranks.size(); ++number) {
    const RankRecord& rank = state.ranks[number];
    list += (list.empty() ? "[\n    {\"rank\": " : ",\n    {\"rank\": ") + std::to_string(number) +
            ", \"host\": " + JsonString(state.plan.hosts[state.plan.ranks[number].host]) +
            ", \"pid\": " + std::to_string(rank.pid) +
            ", \"state\": " + JsonString(RankStateName(rank));
    if (rank.end) {
      list += rank.end->by_signal ? ", \"signal\": " : ", \"exit_code\": ";
      list += std::to_string(rank.end->value);
    }
    list += "}";
  }
  return list + "\n  ]";
}

std::string FolderOf(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status CannotWrite(const std::string& path, int error) {
  return InvalidArgument("the error file " + path + " cannot be written: " + std::strerror(error));
}

}  // namespace

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    size_t length = Utf8Length(text);
    if (length == 0) {
      out += kReplacement;
    } else if (length == 1) {
      out += Escaped(static_cast<unsigned char>(text[0]));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out + '"';
}

std::string ErrorJson(const JobState& state, const std::string& job_id,
                      const std::vector<std::string>& command) {
  JsonObject json;
  json.Number("version", 1);
  json.Text("job", job_id);
  json.Raw("command", JsonList(command));
  json.Number("num_proc", state.plan.size());
  json.Number("exit_code", ExitCode(state));
  if (state.failure) {
    json.Text("kind", KindName(state.failure->kind));
    json.Text("report", Report(state));
    std::optional<uint32_t> cause = FirstFailedRank(state);
    if (state.failure->kind == JobFailure::Kind::kRank && cause) AddRank(json, state, *cause);
    if (state.failure->kind == JobFailure::Kind::kHost ||
        state.failure->kind == JobFailure::Kind::kHosts) {
      json.Text("host", state.plan.hosts[state.failure->host]);
    }
    if (state.failure->kind == JobFailure::Kind::kInterrupt) {
      json.Number("signal", state.failure->signal);
      json.Text("signal_name", SignalName(state.failure->signal));
    }
  }
  json.Raw("ranks", RanksJson(state));
  return json.Close();
}

Status PrepareErrorFile(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return InvalidArgument("the error file " + path + " is not an ordinary file; name another");
  }
  if (::access(FolderOf(path).c_str(), W_OK | X_OK) != 0) return CannotWrite(path, errno);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return CannotWrite(path, errno);
  return Status::Ok();
}

Status WriteErrorFile(const std::string& path, std::string_view text) {
  std::string draft = path + ".XXXXXX";
  UniqueFd fd(::mkostemp(draft.data(), O_CLOEXEC));  // mode 0600
  if (!fd.valid()) return CannotWrite(path, errno);
  if (WriteAll(fd.get(), text) && ::rename(draft.c_str(), path.c_str()) == 0) return Status::Ok();
  int error = errno;
  ::unlink(draft.c_str());
  return CannotWrite(path, error);
}

}  // namespace hvd
