//! A socket whose end is seen one turn late, so that what came before it is read first.
//!
//! A client may send a whole request and hang up at once. HTTP would drop the request together
//! with its connection before any route has seen the body, and it would leave no account.

use std::io::{Error, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A client's socket.
#[derive(Debug)]
pub(super) struct LateEnd {
    socket: TcpStream,
    has_ended: bool,
}

impl LateEnd {
    pub(super) fn new(socket: TcpStream) -> Self {
        Self { socket, has_ended: false }
    }
}

impl AsyncRead for LateEnd {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Error>> {
        let before = buffer.filled().len();
        let read = match Pin::new(&mut self.socket).poll_read(context, buffer) {
            Poll::Ready(read) => read,
            Poll::Pending => return Poll::Pending,
        };
        let is_over = read.is_err() || (buffer.filled().len() == before && buffer.remaining() > 0);
        if is_over && !self.has_ended {
            self.has_ended = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for LateEnd {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Error>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
