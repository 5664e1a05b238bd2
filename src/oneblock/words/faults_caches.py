"""Words for what goes wrong with caches."""

CACHES: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "cache.differs": (
        (
            "With a cache the answer at position {position} is another than without ({moved}, in float64).",
            "Put keys and values into the cache after they are rotated, in order; count positions, biases and "
            "masks from the cache's length.",
        ),
        (
            "使用缓存时位置 {position} 的输出与不用缓存时不同（相差 {moved}，float64）。",
            "按顺序缓存旋转之后的键和值；位置、偏置与掩码都要从缓存长度起算。",
        ),
    ),
    "cache.positions": (
        (
            "With a cache positions begin at 0 again unless they are given: the answer at {position} differs by "
            "{moved}.",
            "Begin at the cache's length: positions = arange(past, past + length).",
        ),
        (
            "使用缓存且未给出位置时，位置又从 0 开始：位置 {position} 的输出相差 {moved}。",
            "从缓存长度开始：positions = arange(past, past + length)。",
        ),
    ),
    "cache.ignored": (
        (
            "The cache is taken and not read: the answer at position {position} is that of the new token alone.",
            "Join the cached keys and values with the new ones before the scores: torch.cat([past, new], dim=-2).",
        ),
        (
            "接收了缓存却没有读取：位置 {position} 的输出等于只看新词元时的输出。",
            "计算分数之前把缓存的键、值与新的拼接起来：torch.cat([past, new], dim=-2)。",
        ),
    ),
    "cache.fails": (
        (
            "{tokens} new tokens on top of a cache of {past} fail: {said}",
            "Make the mask (new tokens, past + new tokens), its last row seeing everything, and add positions of "
            "the new tokens only.",
        ),
        (
            "缓存中已有 {past} 个词元时再输入 {tokens} 个新词元会报错：{said}",
            "掩码的形状应为（新词元数，已缓存数 + 新词元数），最后一行可见全部；只加新词元的位置。",
        ),
    ),
    "cache.switch": (
        (
            "Asking for a cache changes the answer by {moved}.",
            "Let the cache only remember: the same mask, positions and kernel with use_cache as without.",
        ),
        (
            "要求返回缓存会使输出变化 {moved}。",
            "缓存只应负责记忆：无论是否使用缓存，掩码、位置和内核都要相同。",
        ),
    ),
    "chunk.differs": (
        (
            "{tokens} tokens at once on top of {past} in the cache are answered otherwise than in one text "
            "(position {position}, {moved}).",
            "The mask of a part is aligned to its end: query i sees keys up to past + i. is_causal=True aligns "
            "to the start; give a mask.",
        ),
        (
            "缓存中有 {past} 个词元时一次输入 {tokens} 个，输出与整段输入时不同（位置 {position}，相差 {moved}）。",
            "分块的掩码应与末端对齐：第 i 个查询可见 past + i 及之前的键。is_causal=True 与起点对齐，"
            "此时请显式给出掩码。",
        ),
    ),
    "chunk.leak": (
        (
            "{tokens} tokens at once on top of {past} in the cache see each other's future (position {position}, "
            "{moved}).",
            "With a cache a part needs a mask too: query i sees keys up to past + i, no further.",
        ),
        (
            "缓存中有 {past} 个词元时一次输入 {tokens} 个，它们会看到彼此之后的词元（位置 {position}，相差 {moved}）。",
            "使用缓存时分块同样需要掩码：第 i 个查询只可见 past + i 及之前的键。",
        ),
    ),
    "crop.differs": (
        (
            "Cut from {had} to {kept} tokens the cache goes on otherwise than one that never held more ({moved}).",
            "Cut keys, values and the count of tokens of every layer: x[..., :length, :].",
        ),
        (
            "缓存从 {had} 个词元裁到 {kept} 个之后，结果与从未多存过的缓存不同（相差 {moved}）。",
            "每一层的键、值和词元计数都要裁剪：x[..., :length, :]。",
        ),
    ),
    "crop.fails": (
        (
            "Cutting the cache to {kept} tokens fails: {said}",
            "crop(n) leaves min(n, length) tokens and never raises for n beyond the length.",
        ),
        (
            "把缓存裁到 {kept} 个词元时报错：{said}",
            "crop(n) 应保留 min(n, 长度) 个词元，n 超过长度时也不应报错。",
        ),
    ),
    "crop.nothing": (
        (
            "Cut to 0 tokens the cache still holds some of the old text, or can no longer be used.",
            "crop(0) leaves an empty cache: test `is None`, not truth, and mind that x[:-0] is empty and x[:0] is too.",
        ),
        (
            "裁到 0 个词元后缓存仍留有旧文本，或已无法使用。",
            "crop(0) 应得到空缓存：要判断 `is None` 而不是真假。",
        ),
    ),
    "reorder.differs": (
        (
            "After its rows are reordered the cache goes on with the wrong texts ({moved}; {said}).",
            "Reorder keys and values of every layer along the batch axis: x.index_select(0, rows), and what "
            "counts per row.",
        ),
        (
            "缓存的行重新排序后，续写用的是错误的文本（相差 {moved}；{said}）。",
            "每一层的键和值都要沿批次维重排：x.index_select(0, rows)，按行计数的量也一样。",
        ),
    ),
    "reuse.state": (
        (
            "A second text is answered otherwise than by a fresh module ({moved}): something of the first is left.",
            "Keep no text in the module or in a default argument: make the cache per text, or reset it.",
        ),
        (
            "第二段文本的输出与全新模块不同（相差 {moved}）：第一段文本有残留。",
            "不要把文本状态留在模块或默认参数里：每段文本新建缓存，或先清空。",
        ),
    ),
    "reuse.reset": (
        (
            "After reset() the cache still answers from the old text ({moved}).",
            "reset() forgets keys, values, counts and positions of every layer.",
        ),
        (
            "reset() 之后缓存仍带有旧文本的内容（相差 {moved}）。",
            "reset() 应清除每一层的键、值、计数和位置。",
        ),
    ),
    "reuse.shared": (
        (
            "A cache is changed by what is asked with another one, or by a second step from the same one ({moved}).",
            "Give every text its own tensors: no class attribute, no buffer of the module, no writing into a "
            "tuple that was handed out.",
        ),
        (
            "一个缓存会被别的提问（或从同一缓存出发的另一步）改变（相差 {moved}）。",
            "每段文本使用自己的张量：不要用类属性或模块缓冲区，也不要原地改写已交出的元组。",
        ),
    ),
    "cache.padding": (
        (
            "Under left padding a cached answer at position {position} is another than without a cache ({moved}).",
            "Take positions and mask per row from the whole attention mask, past and new tokens, in every step.",
        ),
        (
            "左填充时，使用缓存在位置 {position} 的输出与不用缓存时不同（相差 {moved}）。",
            "每一步都按行从覆盖已缓存与新词元的完整注意力掩码得出位置和掩码。",
        ),
    ),
    "cache.positions_given": (
        (
            "With a cache the positions given per row are not used: position {position} differs by {moved}.",
            "Use position_ids in every step, not the cache's length, which is the same for all rows.",
        ),
        (
            "使用缓存时没有采用逐行给出的位置：位置 {position} 相差 {moved}。",
            "每一步都使用 position_ids，而不是所有行共用的缓存长度。",
        ),
    ),
    "window.cache": (
        (
            "Beyond the window of {window} the cached answer is another than without a cache "
            "({tokens} tokens after {past}; position {position}, {moved}).",
            "Show a step the last {window} tokens only; let a long prompt attend to all its keys with a banded "
            "mask, then keep the tail.",
        ),
        (
            "超出长度为 {window} 的窗口后，使用缓存的输出与不用时不同（{past} 个之后的 {tokens} 个词元；位置 "
            "{position}，相差 {moved}）。",
            "每一步只让它看到最后 {window} 个词元；长提示先用带状掩码关注全部键，再保留末尾。",
        ),
    ),
}
