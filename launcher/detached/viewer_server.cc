#include "launcher/detached/viewer_server.h"

#include <poll.h>
#include <signal.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "launcher/detached/follow.h"
#include "launcher/detached/shown.h"
#include "launcher/detached/viewer_pipes.h"
#include "launcher/detached/viewer_protocol.h"

namespace hvd {
namespace {

constexpr size_t kMostReason = 4096;

class ViewerServer {
 public:
  ViewerServer(const DetachedJob& job, int in, int out)
      : job_(job), in_(in), out_(out), shown_(job.PathOf("shown")) {}

  Status Run() {
    outgoing_ = kViewerGreeting + messages_.Next(JobThere{job_.name, job_.id, shown_.Read()});
    for (;;) {
      Wait();
      std::string bytes;
      const bool open = ReceiveSome(in_, &bytes);
      words_.Append(bytes);
      HVD_RETURN_IF_ERROR(ReceiveMessages());
      if (!open) return recorded_;
      // The record of what was shown may still arrive when nothing can be sent any more.
      if (!reader_gone_ && !SendSome(out_, &outgoing_)) reader_gone_ = true;
      if (MaySend()) SendNext();
    }
  }

 private:
  bool MaySend() const { return source_ && !reader_gone_ && !over_ && outgoing_.empty(); }

  void Wait() const {
    const bool full = !reader_gone_ && !outgoing_.empty();
    pollfd entries[] = {{in_, POLLIN, 0}, {full ? out_ : -1, POLLOUT, 0}};
    (void)::poll(entries, std::size(entries), MaySend() ? 0 : -1);
  }

  Status ReceiveMessages() {
    std::optional<LogPlace> shown;
    for (;;) {
      Result<std::optional<FromViewer>> word = words_.Next();
      if (!word.ok()) return word.status();
      if (!*word) break;
      if (const auto* from = std::get_if<ShowFrom>(&**word)) {
        if (source_) return InvalidArgument("the beginning is named twice");
        source_.emplace(job_, from->place);
        sent_ = from->place;
        shown = from->place;
      } else if (const auto* to = std::get_if<ShownUpTo>(&**word)) {
        if (to->place.offset > sent_.offset)
          return InvalidArgument("output that was not sent is said to be shown");
        shown = to->place;
      } else if (source_) {
        source_->StopJob();
      }
    }
    if (shown && !shown_.Grow(*shown))
      recorded_ = SystemError("cannot record what was shown in " + job_.PathOf("shown"), errno);
    else if (shown)
      recorded_ = Status::Ok();
    return Status::Ok();
  }

  void SendNext() {
    OutputPiece piece;
    switch (source_->Next(&piece)) {  // waits a moment where there is nothing
      case OutputSource::Event::kPiece:
        sent_ = EndOf(piece);
        outgoing_ = messages_.Next(ToViewer(std::move(piece)));
        break;
      case OutputSource::Event::kEnded:
        over_ = true;
        outgoing_ = messages_.Next(
            JobOver{source_->end().exit_code, source_->end().reason.substr(0, kMostReason)});
        break;
      case OutputSource::Event::kIdle:
      case OutputSource::Event::kBroken: break;
    }
  }

  const DetachedJob job_;
  const int in_, out_;
  ShownRecord shown_;
  std::optional<LocalOutput> source_;  // once it is said from where
  LogPlace sent_;
  ViewerMessages messages_;
  ViewerReader<FromViewer> words_;
  std::string outgoing_;
  bool over_ = false, reader_gone_ = false;
  Status recorded_ = Status::Ok();  // what was said last to be shown
};

}  // namespace

Status ServeViewer(const DetachedJob& job, int in, int out) {
  ::signal(SIGPIPE, SIG_IGN);  // a write to a connection that broke is an error
  MakeNonblocking(in);
  MakeNonblocking(out);
  return ViewerServer(job, in, out).Run();
}

}  // namespace hvd
