#include "launcher/channels/ssh/ssh_session.h"

#include <libssh2.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace hvd {
namespace {

constexpr size_t kMaxOpening = 255;
// Our limit: Write takes no more while this many bytes wait to be sent.
constexpr size_t kMaxOutgoing = 512 * 1024;
constexpr int kKeepAliveSeconds = 2;  // the least libssh2 knows; the caller has its own timer
constexpr int kMostFreeTries = 100;

void InitOnce() {
  static const int done = ::libssh2_init(0);
  static_cast<void>(done);
}

// libssh2 1.11.1 replaced this function and deprecates the old one.
template <typename Function>
void SetCallback(LIBSSH2_SESSION* session, int kind, Function* function) {
#if LIBSSH2_VERSION_NUM >= 0x010b01
  ::libssh2_session_callback_set2(session, kind, reinterpret_cast<libssh2_cb_generic*>(function));
#else
  ::libssh2_session_callback_set(session, kind, reinterpret_cast<void*>(function));
#endif
}

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    words.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return words;
}

}  // namespace

struct SshSession::Raw {
  LIBSSH2_SESSION* session = nullptr;
  LIBSSH2_CHANNEL* channel = nullptr;
};

// Replace send and recv.
struct SshSession::Callbacks {
  static ssize_t Send(libssh2_socket_t, const void* bytes, size_t length, int, void** abstract) {
    auto* self = static_cast<SshSession*>(*abstract);
    if (self->dead_) return -EPIPE;
    self->out_.append(static_cast<const char*>(bytes), length);
    return static_cast<ssize_t>(length);
  }
  static ssize_t Receive(libssh2_socket_t, void* buffer, size_t room, int, void** abstract) {
    auto* self = static_cast<SshSession*>(*abstract);
    size_t have = self->in_.size() - self->in_begin_;
    if (self->dead_) return 0;
    // Also at the end: an error here would hide what was received before.
    if (have == 0) return -EAGAIN;
    size_t count = std::min(room, have);
    std::memcpy(buffer, self->in_.data() + self->in_begin_, count);
    self->in_begin_ += count;
    if (self->in_begin_ == self->in_.size()) {
      self->in_.clear();
      self->in_begin_ = 0;
    }
    return static_cast<ssize_t>(count);
  }
  static void Disconnect(LIBSSH2_SESSION*, int, const char* message, int length, const char*, int,
                         void** abstract) {
    auto* self = static_cast<SshSession*>(*abstract);
    self->goodbye_.assign(message, static_cast<size_t>(std::max(length, 0)));
    if (self->goodbye_.empty()) self->goodbye_ = "goodbye";
  }
  static int Sign(LIBSSH2_SESSION*, unsigned char** signature, size_t* length,
                  const unsigned char* data, size_t data_length, void** abstract) {
    const auto& signer = *static_cast<const Signer*>(*abstract);
    std::optional<std::string> made = signer({reinterpret_cast<const char*>(data), data_length});
    if (!made) return LIBSSH2_ERROR_EAGAIN;
    // libssh2 frees it with the C library's free, because our sessions have no allocator.
    if (made->empty() ||
        (*signature = static_cast<unsigned char*>(::malloc(made->size()))) == nullptr)
      return LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED;
    std::memcpy(*signature, made->data(), made->size());
    *length = made->size();
    return 0;
  }
};

SshSession::SshSession() : raw_(std::make_unique<Raw>()) {
  InitOnce();
  raw_->session = ::libssh2_session_init_ex(nullptr, nullptr, nullptr, this);
  ::libssh2_session_set_blocking(raw_->session, 0);
  SetCallback(raw_->session, LIBSSH2_CALLBACK_SEND, &Callbacks::Send);
  SetCallback(raw_->session, LIBSSH2_CALLBACK_RECV, &Callbacks::Receive);
  SetCallback(raw_->session, LIBSSH2_CALLBACK_DISCONNECT, &Callbacks::Disconnect);
}

SshSession::~SshSession() {
  dead_ = true;  // closing politely would wait for the server
  for (int i = 0; i < kMostFreeTries; ++i) {
    if (::libssh2_session_free(raw_->session) != LIBSSH2_ERROR_EAGAIN) return;
  }
}

void SshSession::Feed(std::string_view bytes) {
  if (opening_.size() < kMaxOpening && opening_.find('\n') == std::string::npos) {
    std::string_view first = bytes.substr(0, kMaxOpening - opening_.size());
    size_t line = first.find('\n');
    opening_.append(first.substr(0, line == std::string_view::npos ? line : line + 1));
  }
  if (in_begin_ > 0) in_.erase(0, std::exchange(in_begin_, 0));
  in_.append(bytes);
}

void SshSession::FeedEnd() { fed_end_ = true; }

void SshSession::Consume(size_t count) {
  out_begin_ += count;
  if (out_begin_ == out_.size()) {
    out_.clear();
    out_begin_ = 0;
  } else if (out_begin_ > kMaxOutgoing) {
    out_.erase(0, std::exchange(out_begin_, 0));
  }
}

SshSession::Step SshSession::StepOf(int rc) {
  if (rc == LIBSSH2_ERROR_EAGAIN) return Step::kMore;
  return rc < 0 ? Step::kFailed : Step::kDone;
}

bool SshSession::Offer(const SshAlgorithms& algorithms) {
  auto prefer = [this](int method, const std::vector<std::string>& names) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
    return ::libssh2_session_method_pref(raw_->session, method, list.c_str()) == 0;
  };
  return prefer(LIBSSH2_METHOD_KEX, algorithms.key_exchange) &&
         prefer(LIBSSH2_METHOD_HOSTKEY, algorithms.host_keys) &&
         prefer(LIBSSH2_METHOD_CRYPT_CS, algorithms.ciphers) &&
         prefer(LIBSSH2_METHOD_CRYPT_SC, algorithms.ciphers) &&
         prefer(LIBSSH2_METHOD_MAC_CS, algorithms.macs) &&
         prefer(LIBSSH2_METHOD_MAC_SC, algorithms.macs);
}

SshSession::Step SshSession::Handshake(int fd) {
  return StepOf(::libssh2_session_handshake(raw_->session, fd));
}

std::string SshSession::HostKey() const {
  size_t length = 0;
  int type = 0;
  const char* key = ::libssh2_session_hostkey(raw_->session, &length, &type);
  return key == nullptr ? "" : std::string(key, length);
}

SshSession::Step SshSession::AskMethods(const std::string& user,
                                        std::vector<std::string>* methods) {
  const char* list =
      ::libssh2_userauth_list(raw_->session, user.data(), static_cast<unsigned int>(user.size()));
  if (list != nullptr) {
    *methods = SplitAtCommas(list);
    return Step::kDone;
  }
  if (logged_in()) return Step::kDone;
  return StepOf(::libssh2_session_last_errno(raw_->session));
}

SshSession::Step SshSession::Login(const std::string& user, const std::string& login_blob,
                                   const Signer& signer) {
  void* pointer = const_cast<Signer*>(&signer);
  return StepOf(::libssh2_userauth_publickey(
      raw_->session, user.c_str(), reinterpret_cast<const unsigned char*>(login_blob.data()),
      login_blob.size(), &Callbacks::Sign, &pointer));
}

bool SshSession::logged_in() const { return ::libssh2_userauth_authenticated(raw_->session) == 1; }

SshSession::Step SshSession::OpenChannel() {
  raw_->channel = ::libssh2_channel_open_session(raw_->session);
  return raw_->channel != nullptr ? Step::kDone
                                  : StepOf(::libssh2_session_last_errno(raw_->session));
}

SshSession::Step SshSession::Exec(const std::string& command) {
  return StepOf(::libssh2_channel_process_startup(raw_->channel, "exec", sizeof "exec" - 1,
                                                  command.data(),
                                                  static_cast<unsigned int>(command.size())));
}

size_t SshSession::Write(std::string_view bytes) {
  size_t written = 0;
  while (written < bytes.size() && Outgoing().size() < kMaxOutgoing) {
    ssize_t count = ::libssh2_channel_write_ex(raw_->channel, 0, bytes.data() + written,
                                               bytes.size() - written);
    if (count <= 0) break;  // no window, or no connection, which reading tells
    written += static_cast<size_t>(count);
  }
  return written;
}

bool SshSession::HasRoom() const {
  return Outgoing()
      .size()<kMaxOutgoing&& ::libssh2_channel_window_write_ex(raw_->channel, nullptr)> 0;
}

void SshSession::SendEof() { ::libssh2_channel_send_eof(raw_->channel); }

size_t SshSession::Read(Source source, char* buffer, size_t room) {
  int stream = source == Source::kStderr ? SSH_EXTENDED_DATA_STDERR : 0;
  ssize_t count = ::libssh2_channel_read_ex(raw_->channel, stream, buffer, room);
  return count > 0 ? static_cast<size_t>(count) : 0;
}

void SshSession::KeepAlive() {
  // Requests no answer: libssh2 1.10 would keep all answers in memory.
  ::libssh2_keepalive_config(raw_->session, 0, kKeepAliveSeconds);
  int next = 0;
  ::libssh2_keepalive_send(raw_->session, &next);
}

std::optional<SshSession::End> SshSession::Ended() {
  if (::libssh2_channel_eof(raw_->channel) != 1 ||
      ::libssh2_channel_wait_closed(raw_->channel) != 0) {
    return std::nullopt;
  }
  End end;
  char* signal = nullptr;
  size_t length = 0;
  ::libssh2_channel_get_exit_signal(raw_->channel, &signal, &length, nullptr, nullptr, nullptr,
                                    nullptr);
  if (signal != nullptr) {
    end.signal.assign(signal, length);
    ::libssh2_free(raw_->session, signal);
  }
  end.code = ::libssh2_channel_get_exit_status(raw_->channel);
  return end;
}

void SshSession::Disconnect() {
  ::libssh2_session_disconnect_ex(raw_->session, SSH_DISCONNECT_BY_APPLICATION, "done", "");
}

bool SshSession::could_not_agree() const {
  int error = ::libssh2_session_last_errno(raw_->session);
  return error == LIBSSH2_ERROR_KEX_FAILURE || error == LIBSSH2_ERROR_METHOD_NONE ||
         error == LIBSSH2_ERROR_METHOD_NOT_SUPPORTED;
}

std::string SshSession::error() const {
  if (!goodbye_.empty()) return goodbye_;
  char* text = nullptr;
  int length = 0;
  ::libssh2_session_last_error(raw_->session, &text, &length, 0);
  return text == nullptr ? "" : std::string(text, static_cast<size_t>(length));
}

}  // namespace hvd
