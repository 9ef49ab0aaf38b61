// SshSession: the SSH protocol as bytes in and bytes out, by libssh2. Owns no socket and never
// waits: libssh2 is given two buffers in place of one, so that it can never be stopped in the
// middle of a packet, and "more" always means "what the server says next". One thread. Also the
// only place that knows libssh2.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_SSH_SESSION_H_
#define HVD_LAUNCHER_CHANNELS_SSH_SSH_SESSION_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/channels/ssh/ssh_algorithms.h"

namespace hvd {

class SshSession {
 public:
  enum class Step {
    kDone,
    kMore,    // call again when there is more from the server
    kFailed,  // error() says why
  };

  SshSession();
  ~SshSession();
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;

  // ---- the two buffers
  void Feed(std::string_view bytes);
  void FeedEnd();  // the connection is gone
  // Nothing more will come: the connection is gone, or the server has said goodbye.
  bool gone() const { return fed_end_ || !goodbye_.empty(); }
  // The server's words at parting, if any.
  const std::string& goodbye() const { return goodbye_; }
  std::string_view Outgoing() const { return std::string_view(out_).substr(out_begin_); }
  void Consume(size_t count);

  // ---- in this order
  // False: libssh2 knows none of one kind; error() says so.
  bool Offer(const SshAlgorithms& algorithms);
  // `fd` is only looked at, never read or written.
  Step Handshake(int fd);
  // The words of a server that did not begin with "SSH-"; at most a line.
  const std::string& opening() const { return opening_; }
  bool is_ssh_server() const { return opening_.starts_with("SSH-"); }
  // The blob that the server showed and proved to own.
  std::string HostKey() const;

  // Which ways to log in the server offers this user.
  Step AskMethods(const std::string& user, std::vector<std::string>* methods);
  // The signature, or nothing while it is still being made (then call Login again when it is
  // there), or "" if there is none to be had.
  using Signer = std::function<std::optional<std::string>(std::string_view data)>;
  // `login_blob`: see LoginBlob.
  Step Login(const std::string& user, const std::string& login_blob, const Signer& signer);
  bool logged_in() const;

  Step OpenChannel();
  Step Exec(const std::string& command);

  // ---- while the command runs
  // Takes what the server's window has room for.
  size_t Write(std::string_view bytes);
  // Whether Write would take anything.
  bool HasRoom() const;
  void SendEof();
  enum class Source { kStdout, kStderr };
  // Bytes read into the buffer; 0: nothing for now.
  size_t Read(Source source, char* buffer, size_t room);
  // A line of the protocol that means nothing, so that no router forgets the connection.
  void KeepAlive();

  struct End {
    std::string signal;  // "KILL"; before the code, which is 0 then
    int code = 0;
  };
  // When the command has ended and everything it wrote was read.
  std::optional<End> Ended();
  // Says goodbye to the server.
  void Disconnect();

  // After a failed Handshake: the server has no algorithms in common with libssh2.
  bool could_not_agree() const;
  std::string error() const;

 private:
  struct Raw;
  struct Callbacks;

  Step StepOf(int rc);

  std::unique_ptr<Raw> raw_;
  std::string in_, out_;
  size_t in_begin_ = 0, out_begin_ = 0;
  bool fed_end_ = false, dead_ = false;
  std::string opening_, goodbye_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_SSH_SESSION_H_
