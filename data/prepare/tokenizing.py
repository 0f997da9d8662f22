"""From pieces of text to token ids."""
import os
from array import array

from failures import BadInput

# Tokens that end a document in common vocabularies, the likelier one first.
_END_TOKENS = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>")


class BytesTokenizer:
    """One byte, one token."""

    decodes = False
    vocabulary = 256
    default_end = None

    def id_of(self, token):
        return None

    def encode(self, pieces, typecode):
        width = array(typecode).itemsize
        encoded = []
        for piece in pieces:
            data = bytearray(len(piece) * width)
            data[::width] = piece
            encoded.append(array(typecode, bytes(data)))
        return encoded


class LibraryTokenizer:
    """A tokenizer.json through Hugging Face's `tokenizers`."""

    decodes = True

    def __init__(self, path):
        if not os.path.isfile(path):
            raise BadInput(f"{path} is no file; --tokenizer takes a tokenizer.json, or bytes")
        import tokenizers
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(path)
        except Exception as error:  # the library raises nothing more exact
            raise BadInput(f"{path} is no tokenizer.json of the tokenizers library: {error}") \
                from None
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        if not vocabulary:
            raise BadInput(f"{path} has an empty vocabulary")
        self.vocabulary = max(vocabulary.values()) + 1
        self.default_end = next((t for t in _END_TOKENS if t in vocabulary), None)
        self._encode = getattr(self._tokenizer, "encode_batch_fast", self._tokenizer.encode_batch)

    def id_of(self, token):
        return self._tokenizer.token_to_id(token)

    def encode(self, pieces, typecode):
        return [array(typecode, encoding.ids)
                for encoding in self._encode(pieces, add_special_tokens=False)]


def open_tokenizer(name):
    return BytesTokenizer() if name == "bytes" else LibraryTokenizer(name)


def end_of_document(tokenizer, wanted):
    """The id of the token behind each document, or None; `wanted`: auto, none, an id or a token."""
    if wanted == "none":
        return None
    if wanted == "auto":
        if tokenizer.default_end is None:
            if isinstance(tokenizer, BytesTokenizer):
                return None
            raise BadInput("the tokenizer has none of the usual tokens that end a document "
                           f"({' '.join(_END_TOKENS)}): give --end-of-document TOKEN, or none")
        return tokenizer.id_of(tokenizer.default_end)
    known = tokenizer.id_of(wanted)
    if known is not None:
        return known
    if wanted.isascii() and wanted.isdigit():
        return int(wanted)
    raise BadInput(f"--end-of-document: the tokenizer has no token '{wanted}'")
