#include "launcher/agent/inspection/examine_child.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <asio/buffer.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <sstream>
#include <utility>

#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr size_t kMostBytes = 256 * 1024;  // nobody has that much to say

std::vector<std::string> EnvironmentFor(const ExamineHost& question, const std::string& job_id) {
  std::vector<std::string> environment;
  for (const std::string& entry : question.environment) {
    if (!entry.starts_with("HVD_JOB_ID=")) environment.push_back(entry);
  }
  environment.push_back("HVD_JOB_ID=" + job_id);  // so that a sweep finds it
  return environment;
}

}  // namespace

ExamineChild::ExamineChild(asio::io_context& io, const ExamineHost& question,
                           const std::string& job_id, SpawnDescriptors descriptors,
                           std::function<void(const HostExam&)> done)
    : output_(io), limit_(io), done_(std::move(done)) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    asio::post(io, [this] { Finish(); });
    return;
  }
  UniqueFd write_end(ends[1]);
  output_.assign(ends[0]);
  SpawnRequest request{{"hvdrun", "agent", "--examine", question.directory, question.interpreter},
                       EnvironmentFor(question, job_id),
                       "/"};
  request.program = "/proc/self/exe";
  descriptors.stdout_fd = write_end.get();
  pid_ = SpawnProgram(request, descriptors).pid;
  limit_.expires_after(std::chrono::milliseconds(question.limit_ms));
  limit_.async_wait([this](const asio::error_code& error) {
    if (!error) Finish();
  });
  Read();
}

void ExamineChild::Read() {
  output_.async_read_some(asio::buffer(buffer_),
                          [this](const asio::error_code& error, size_t count) {
                            if (error == asio::error::operation_aborted) return;
                            text_.append(buffer_.data(), count);
                            if (error || text_.size() > kMostBytes) return Finish();
                            Read();
                          });
}

// A child that has said everything ends by itself, and is perhaps reaped: its number may be that of
// another process.
void ExamineChild::Finish() {
  if (!done_) return;
  limit_.cancel();
  output_.close();
  bool whole = text_.ends_with("done=1\n");
  if (pid_ > 0 && !whole) ::kill(-pid_, SIGKILL);
  HostExam exam;
  std::istringstream lines(text_);
  for (std::string line; std::getline(lines, line);) exam.facts.push_back(line);
  std::exchange(done_, nullptr)(exam);
}

}  // namespace hvd
