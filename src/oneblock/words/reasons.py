"""Chinese for what a check says on its way: why a question was not put, and how a module is called; {} is filled."""

from __future__ import annotations

from oneblock.words.phrase import Phrase
from oneblock.words.reasons_of_checks import REASONS

CALLING: dict[str, str] = {
    "{}: ids, batch first": "{}：编号，批次在前",
    "{}: ids, length first": "{}：编号，长度在前",
    "{}: vectors, batch first": "{}：向量，批次在前",
    "{}: vectors, length first": "{}：向量，长度在前",
    "{}: the source, ids": "{}：源文本，编号",
    "{}: the source, vectors": "{}：源文本，向量",
    "padding is told by its id {}": "填充由编号 {} 表示",
    "{}: True = a real token": "{}：True = 真实词元",
    "{}: 1 = a real token": "{}：1 = 真实词元",
    "{}: True = hidden": "{}：True = 遮住",
    "{}: 1 = hidden": "{}：1 = 遮住",
    "{}: -inf = hidden, added": "{}：-inf = 遮住，相加",
    "{}: (batch, 1, 1, length), True = real": "{}：(batch, 1, 1, length)，True = 真实",
    "{}: (batch, 1, 1, length), True = hidden": "{}：(batch, 1, 1, length)，True = 遮住",
    "{}: (batch, 1, 1, length), -inf = hidden, added": "{}：(batch, 1, 1, length)，-inf = 遮住，相加",
    "{}: (batch, 1, length, length), True = real": "{}：(batch, 1, length, length)，True = 真实",
    "{}: (batch, 1, length, length), True = hidden": "{}：(batch, 1, length, length)，True = 遮住",
    "{}: a causal mask from the caller": "{}：调用者给出的因果掩码",
    "{}: positions": "{}：位置",
    "{}: labels": "{}：标签",
    "{}: a cache": "{}：缓存",
    "its cache is held by the module": "缓存由模块自己保存",
    "decoder: changing the last token changes nothing before it": "解码器：改变最后一个词元，前面都不变",
    "encoder: it answers with one vector per text": "编码器：每条文本回答一个向量",
    "encoder: earlier tokens see later ones, and nothing says that they must not": (
        "编码器：前面的词元看得到后面的，且没有迹象表明不该如此"
    ),
    "seq2seq: it takes {} and {}": "编码器-解码器：接受 {} 与 {}",
    "decoder: its config says is_decoder": "解码器：配置里写着 is_decoder",
    "decoder: it holds a {}": "解码器：其中有 {}",
    "decoder: it is called {}": "解码器：它叫 {}",
    "decoder: its buffer {} is a triangle": "解码器：缓冲区 {} 是三角形",
    "decoder: it makes a triangle ({})": "解码器：它造出三角形（{}）",
    "decoder: as told": "解码器：按所说",
    "encoder: as told": "编码器：按所说",
    "seq2seq: as told": "编码器-解码器：按所说",
}
"""English -> Chinese, of how a module is called."""


def in_language(said: str, lang: str) -> str:
    """A sentence of a check in a language: a phrase in Chinese where its template has words, anything else as it is."""
    if lang != "zh" or not isinstance(said, Phrase):
        return said
    words = (CALLING | REASONS).get(said.template)
    return said if words is None else words.format(*said.fills)
