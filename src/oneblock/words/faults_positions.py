"""Words for positions that are forgotten, unread, unshifted, too coarse or too few."""

POSITIONS: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "positions.ignored": (
        (
            "The model does not know the order of its tokens: turned round, they get the same answers.",
            "Add positions to the embedding, or turn queries and keys by them.",
        ),
        (
            "模型不知道词元的顺序：颠倒之后，输出不变。",
            "在词嵌入上加位置，或按位置旋转查询与键。",
        ),
    ),
    "positions.source": (
        (
            "The order of the source is not known: turned round, it gets the same answers.",
            "Give the encoder positions.",
        ),
        (
            "模型不知道源文本的顺序：颠倒之后，输出不变。",
            "让编码器带上位置信息。",
        ),
    ),
    "positions.none": (
        (
            "No positions: only the causal mask tells the order.",
            "If that is not meant, add positions to the embedding, or turn queries and keys by them.",
        ),
        (
            "没有位置信息：只有因果掩码透露顺序。",
            "若并非有意，请在词嵌入上加位置，或按位置旋转查询与键。",
        ),
    ),
    "positions.unread": (
        (
            "Positions are accepted and ignored: in another order they change nothing.",
            "Use them in the position table or the rotation, instead of counting again.",
        ),
        (
            "位置参数被接受却没有使用：换一种顺序，输出不变。",
            "在位置表或旋转中使用它们，而不是自己重新计数。",
        ),
    ),
    "positions.left": (
        (
            "With {hidden} pads on the left a text gets other answers (by {moved}): its positions begin at the pads.",
            "Count positions from the first real token: (mask.cumsum(-1) - 1).clamp_min(0).",
        ),
        (
            "左侧有 {hidden} 个填充时，文本得到不同的输出（相差 {moved}）：位置从填充处开始计数。",
            "从第一个真实词元开始计数：(mask.cumsum(-1) - 1).clamp_min(0)。",
        ),
    ),
    "positions.left.caller": (
        (
            "Padding on the left changes the answers by {moved} unless the caller gives positions.",
            "When a mask comes without positions, count from the first real token: (mask.cumsum(-1) - 1).clamp_min(0).",
        ),
        (
            "除非调用者给出位置，否则左侧填充使输出变化 {moved}。",
            "只有掩码而没有位置时，从第一个真实词元开始计数：(mask.cumsum(-1) - 1).clamp_min(0)。",
        ),
    ),
    "positions.short": (
        (
            "A text of {length} tokens, the longest that the model says it knows, fails: {said}",
            "Give the position table as many rows as the longest text has tokens, and begin at row 0.",
        ),
        (
            "模型声称支持的最长文本（{length} 个词元）运行失败：{said}",
            "位置表的行数应等于最长文本的词元数，并从第 0 行开始。",
        ),
    ),
    "positions.repeated": (
        (
            "In a text of {length} tokens places {position} and {other} cannot be told apart: they share a position.",
            "Give every place its own position; look for a clamp or a modulus.",
        ),
        (
            "在 {length} 个词元的文本中，位置 {position} 与 {other} 无法区分：它们共用同一个位置编码。",
            "让每个位置有自己的编码；检查 clamp 或取模。",
        ),
    ),
    "positions.precision": (
        (
            "In bfloat16 late positions are lost: the error at places beyond 256 is {late}, at early ones {early}.",
            "Keep positions, frequencies and angles in float32 whatever the model's dtype; cast cosine and sine only.",
        ),
        (
            "在 bfloat16 中靠后的位置丢失：256 之后的误差为 {late}，开头处为 {early}。",
            "无论模型用什么精度，位置、频率与角度都保持 float32；只转换余弦与正弦。",
        ),
    ),
    "rotary.values": (
        (
            "Values are turned by their positions: what is mixed then depends on where it stood.",
            "Turn queries and keys only.",
        ),
        (
            "值也被按位置旋转：混合出的内容因此取决于它所在的位置。",
            "只旋转查询与键。",
        ),
    ),
    "rotary.pairs": (
        (
            "Queries and keys are not turned alike: scores of equal tokens at equal distance differ by {moved}.",
            "Use one function, one pairing (halves or neighbours), one sign and the same positions for both.",
        ),
        (
            "查询与键的旋转不一致：相同词元、相同距离，分数却相差 {moved}。",
            "两者使用同一个函数、同一种配对（前后两半或相邻两维）、同样的符号与位置。",
        ),
    ),
    "sinusoids.unpaired": (
        (
            "Sines and cosines of the position table have different speeds: places at "
            "equal distance differ by {moved}.",
            "Give dimensions 2i and 2i + 1 the same speed, 10000 ** (-2i / dim).",
        ),
        (
            "位置表中正弦与余弦的频率不成对：距离相同的位置相差 {moved}。",
            "让第 2i 与 2i + 1 维使用同一频率 10000 ** (-2i / dim)。",
        ),
    ),
}
