-- Quoting, comments, spacing, upper and lower case.
-- table: people

SELECT COUNT(*) FROM PEOPLE WHERE AGE>40

sElEcT cOuNt ( * ) fRoM people wHeRe Nationality = 'Kenya' aNd nOt MEMBER

select count(*)from people where(age)>(40)and(score)<90

	select
	count(*)
from   people
  where  age   >
40

select count(*) /* how many */ from people -- all of them
where age > 40 /* and
score > 3 */ and member

select count(*) from people where age > 40;

select count(*) from people where "age" > 40 and "SCORE" > 80 and "Größe" = 'S'

select count(*) from people where größe = 'naïve'

select count(*) from "people" where "people"."age" > 40

select count(*) from people as "the people" where "the people".age > 40

select count(*) from people p where p.age > 40 and P.Score < 90

select count(*) from main.people where age > 40

select count(*) as n from people where "select" and "odd name" = -7

select count(*) "how many" from people

select count(*) as count from people group by "select" order by "select"

select count(*), count(*), sum(age), sum(score) from people

from people select count(*) where age > 40

select count(*) from people where age = 1e1 + 2.0e+1

select count(*) from people where age > .5 and balance < 5.

select count(*) from people where age > '40'

select count(*) from people where balance = - 7 or balance = (-8) or balance in (-9, +3)

select count(*) from people where nationality = 'Kenya' or nationality = $$Ghana$$

select sum(age) as a, sum(age) as b, sum(age) + sum(age) as c from people
