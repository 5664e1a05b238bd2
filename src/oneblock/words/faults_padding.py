"""Words for padding that counts, and for rows that see nothing."""

PADDING: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "padding.content": (
        (
            "Padding leaks: changing only hidden tokens ({side}) changes real tokens' outputs by {moved}.",
            "Hide padded keys before the softmax in every layer, and hand the mask on to each of them.",
        ),
        (
            "填充泄漏：只改变被遮住的词元，真实词元的输出就变化 {moved}。",
            "在每一层的 softmax 之前遮住填充位置的键，并把掩码传到每一层。",
        ),
    ),
    "padding.ignored": (
        (
            "The padding mask is accepted and ignored: with it the answers are the same as without it ({side}).",
            "Combine the mask with the causal one and give it to every attention layer.",
        ),
        (
            "填充掩码被接受却没有使用：给不给它，输出都一样。",
            "把它与因果掩码合并，并传给每一个注意力层。",
        ),
    ),
    "padding.amount": (
        (
            "A text's answers depend on how much padding follows it: {hidden} hidden tokens change them by {moved}.",
            "Count real tokens, not the padded length, wherever something is averaged, scaled or numbered.",
        ),
        (
            "输出取决于后面有多少填充：{hidden} 个被遮住的词元使输出变化 {moved}。",
            "凡是求平均、缩放或编号的地方，都按真实词元数计算，而不是按填充后的长度。",
        ),
    ),
    "padding.shrinks": (
        (
            "The output is shorter than the input where all texts are padded: {got} places for {asked} tokens.",
            "Return as many places as came in, or fill the rest up again.",
        ),
        (
            "当整批文本都有填充时，输出比输入短：{asked} 个词元只得到 {got} 个位置。",
            "返回与输入等长的结果，或把缺少的位置补齐。",
        ),
    ),
    "padding.modes": (
        (
            "With padding and without dropout, train and eval mode differ by {moved}; without padding they agree.",
            "Give the same mask to both paths; look for a fast path that is taken in one mode only.",
        ),
        (
            "有填充且没有 dropout 时，训练与评估模式相差 {moved}；没有填充时两者一致。",
            "让两条路径使用同一个掩码；检查是否有只在一种模式下启用的快速路径。",
        ),
    ),
    "padding.unmasked": (
        (
            "Nobody can say which tokens are padding: a padded text is answered differently by {moved}.",
            "Take a padding mask and hide those keys (key_padding_mask), or never pad.",
        ),
        (
            "无法说明哪些词元是填充：填充后的文本，输出相差 {moved}。",
            "接受一个填充掩码并遮住这些键（key_padding_mask），或者不要填充。",
        ),
    ),
    "source.content": (
        (
            "Padding of the source leaks: changing only its hidden tokens changes the answers by {moved}.",
            "Hide padded source tokens in the encoder's self-attention and in every cross-attention.",
        ),
        (
            "源端填充泄漏：只改变源文本中被遮住的词元，输出就变化 {moved}。",
            "在编码器的自注意力和每一个交叉注意力中都遮住源端的填充。",
        ),
    ),
    "source.unmasked": (
        (
            "The source's padding mask is accepted and ignored: hidden source tokens change the answers by {moved}.",
            "Give the mask to the encoder's self-attention and to every cross-attention.",
        ),
        (
            "源端填充掩码被接受却没有使用：被遮住的源词元使输出变化 {moved}。",
            "把掩码传给编码器的自注意力和每一个交叉注意力。",
        ),
    ),
    "source.amount": (
        (
            "The answers depend on how much padding follows the source: by {moved}.",
            "Hide the padded memory in cross-attention, and count real source tokens only.",
        ),
        (
            "输出取决于源文本后面有多少填充：相差 {moved}。",
            "在交叉注意力中遮住填充位置的记忆，并且只按真实的源词元计数。",
        ),
    ),
    "pooling.counts": (
        (
            "Padding counts in the vector of a text: it moves by {moved}.",
            "Average, or take the maximum, over real tokens only; read the last real token, not the last place.",
        ),
        (
            "填充被算进了文本向量：向量变化 {moved}。",
            "只对真实词元求平均或取最大值；读取最后一个真实词元，而不是最后一个位置。",
        ),
    ),
    "pooling.side": (
        (
            "The vector of a text is right with padding on the left only; on the right it moves by {moved}.",
            "Read the last real token: x[rows, mask.sum(1) - 1]; or say clearly that texts are padded on the left.",
        ),
        (
            "只有左侧填充时文本向量才正确；右侧填充使它变化 {moved}。",
            "读取最后一个真实词元：x[rows, mask.sum(1) - 1]；或明确说明必须左侧填充。",
        ),
    ),
    "nothing.spreads": (
        (
            "A row that sees no key becomes nan and spoils real tokens ({what}).",
            "Give such rows zeros (scaled_dot_product_attention does), or let each see itself; 0 · nan is nan.",
        ),
        (
            "看不到任何键的行变成 nan，并污染了真实词元。",
            "让这样的行输出零（scaled_dot_product_attention 就是如此），或让它至少看到自己；0 乘 nan 仍是 nan。",
        ),
    ),
    "nothing.gradient": (
        (
            "A row that sees no key makes gradients nan, though real tokens' answers are finite ({what}).",
            "Keep the softmax itself finite: masked_fill a finite number, or scaled_dot_product_attention; "
            "nan_to_num afterwards mends the forward pass only.",
        ),
        (
            "看不到任何键的行使梯度变成 nan，尽管真实词元的输出是有限的。",
            "让 softmax 本身保持有限：填入有限的数，或使用 "
            "scaled_dot_product_attention；事后的 nan_to_num 只能修好前向。",
        ),
    ),
    "nothing.nan": (
        (
            "Where nothing is visible the answer is nan ({what}); real tokens and gradients stay finite.",
            "Give such rows zeros, so that no sum or mean over them is spoilt later.",
        ),
        (
            "什么都看不到的位置输出 nan；真实词元与梯度仍是有限的。",
            "让这样的行输出零，以免之后的求和或平均被污染。",
        ),
    ),
}
