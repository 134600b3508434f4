"""Frames however they arrive."""

import unittest

from larder.errors import DecodeError
from larder.frames import FrameDecoder, RawFrame, encode_frame
from larder.session import Session

from .test_vectors import load, octets


def verify(stream, expected, limit=65_536):
    """Feeds a stream whole, byte by byte, and cut in two at every place; each must give the same frames."""
    chunkings = [[stream], [stream[at:at + 1] for at in range(len(stream))]]
    chunkings += [[stream[:at], stream[at:]] for at in range(1, len(stream))]
    for chunks in chunkings:
        decoder = FrameDecoder(limit)
        found = [frame for chunk in chunks for frame in decoder.feed(chunk)]
        assert found == expected, (chunks, found)
        assert decoder.buffered == 0


class FrameTests(unittest.TestCase):
    def test_any_chunks_give_the_same_frames(self):
        frames = [RawFrame(0x0E, 1, b"\x02\xab\xcd"), RawFrame(3, 0, b""), RawFrame(0x8B, 7, b"x" * 300),
                  RawFrame(0x9F, 2 ** 32 - 1, b"y")]
        verify(b"".join(encode_frame(*frame) for frame in frames), frames)

    def test_vectors_byte_by_byte(self):
        for vector in load("frames")["invalid"]:
            if vector["type"] != "frame" or vector["error"] not in ("bad_frame", "frame_too_large"):
                continue
            if "id 0" in vector["name"]:
                continue
            decoder = FrameDecoder(vector["limit"])
            with self.subTest(vector["name"]), self.assertRaises(DecodeError):
                for byte in octets(vector):
                    list(decoder.feed(bytes([byte])))

    def test_a_length_is_refused_before_its_body_comes(self):
        with self.assertRaises(DecodeError):
            list(FrameDecoder(4).feed(encode_frame(1, 1, b"12345")[:12]))

    def test_a_session_answers_pings(self):
        session = Session()
        session.receive(encode_frame(0x0E, 9, b"\x01z"))
        self.assertEqual(bytes(session.outgoing), encode_frame(0x8E, 9, b"\x01z"))
